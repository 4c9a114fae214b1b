import cluster from "node:cluster";
import { Socket } from "node:net";
import { threadCpuUsage } from "node:process";
import { createInterface } from "node:readline";
import { setImmediate as nextTick } from "node:timers/promises";
import { retained } from "../support/retained.ts";

/**
 * Loaded by `node --import` into a server under test. It answers commands on this file descriptor:
 *
 * memory  returns the bytes in use after a full garbage collection, without what V8 keeps in reserve
 * start   starts to measure the ticks of the event loop; returns 0
 * tick    stops measuring, and returns the longest tick in milliseconds of CPU time, which hardly depends on other load
 * delay   returns the longest delay of the event loop since the previous command, in milliseconds
 */
const CHANNEL = 3;

// Workers inherit `--import`, and have this descriptor for Node's own channel.
const channel = cluster.isPrimary ? new Socket({ fd: CHANNEL }) : new Socket();
channel.unref();
let stop: (() => Promise<number>) | undefined;

/** Milliseconds. */
const INTERVAL = 10;

let longestDelay = 0;
let lastTick = performance.now();
setInterval(noteDelay, INTERVAL).unref();

createInterface({ input: channel }).on("line", async (line) => {
  if (line === "memory") {
    answer(await retained());
    // The collections are not the server's work.
    noteDelay();
    longestDelay = 0;
  }
  if (line === "start") {
    stop ??= measureTicks();
    answer(0);
  }
  if (line === "tick") {
    const longest = await stop?.();
    stop = undefined;
    answer(longest ?? 0);
  }
  if (line === "delay") {
    noteDelay();
    answer(longestDelay);
    longestDelay = 0;
  }
});

/** Node's histogram would miss a delay that begins within 10 ms after a reset. */
function noteDelay(): void {
  const now = performance.now();
  longestDelay = Math.max(longestDelay, now - lastTick - INTERVAL);
  lastTick = now;
}

function answer(value: number): void {
  channel.write(`${value}\n`);
}

/** Keeps the event loop busy, so that a tick is the time between two measurements. */
function measureTicks(): () => Promise<number> {
  let isOver = false;
  const watching = (async () => {
    let longest = 0;
    for (let before = computed(); !isOver; ) {
      await nextTick();
      const now = computed();
      longest = Math.max(longest, now - before);
      before = now;
    }
    return Math.round(longest);
  })();
  return () => {
    isOver = true;
    return watching;
  };
}

/** Milliseconds of CPU time of this thread. */
function computed(): number {
  const { user, system } = threadCpuUsage();
  return (user + system) / 1000;
}
