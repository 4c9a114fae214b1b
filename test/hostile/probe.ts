import { Socket } from "node:net";
import { memoryUsage, threadCpuUsage } from "node:process";
import { createInterface } from "node:readline";
import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Loaded by `node --expose-gc --import` into a server under test. It answers the lines that come over this file descriptor:
 *
 * memory  the bytes that are in use after all garbage was collected: what is retained, without what V8 keeps in reserve
 * watch   begins to measure the turns of the event loop; answers 0
 * turn    ends that, and answers the longest one in milliseconds of CPU time, which hardly depends on what else the machine does
 */
const CHANNEL = 3;

const channel = new Socket({ fd: CHANNEL });
channel.unref();
let stop: (() => Promise<number>) | undefined;

createInterface({ input: channel }).on("line", async (line) => {
  if (line === "memory") answer(await retained());
  if (line === "watch") {
    stop ??= watchTurns();
    answer(0);
  }
  if (line === "turn") {
    const longest = await stop?.();
    stop = undefined;
    answer(longest ?? 0);
  }
});

function answer(value: number): void {
  channel.write(`${value}\n`);
}

async function retained(): Promise<number> {
  // Twice: a finalizer of the first round may release more.
  for (let round = 0; round < 2; round++) {
    globalThis.gc?.();
    await nextTurn();
  }
  const { heapUsed, external } = memoryUsage();
  return heapUsed + external;
}

/** Keeps the event loop turning, so that a turn is what is done between two looks. */
function watchTurns(): () => Promise<number> {
  let isOver = false;
  const watching = (async () => {
    let longest = 0;
    for (let before = computed(); !isOver; ) {
      await nextTurn();
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
