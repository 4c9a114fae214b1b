import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { ownOsUser } from "./os-user.ts";
import { readPidFile } from "./pid-file.ts";
import { signalProcess } from "./process.ts";
import { startProgram } from "./spawn.ts";

type Step = readonly [signal: NodeJS.Signals, ms: number];

/**
 * Fast shutdown, immediate shutdown (PostgreSQL docs, 18.5), and what nothing withstands; with the time each may take. A fast one in
 * the middle of a crash never ends (PostgreSQL 18.4); after an immediate one the next start recovers, and nothing is lost.
 */
const steps: readonly Step[] = [
  ["SIGINT", 15_000],
  ["SIGQUIT", 10_000],
  ["SIGKILL", 10_000],
];

/**
 * Stops the postmaster `pid` of a cluster and resolves when `exited` has, which tells of its end. One that still recovers has nothing
 * to bring in order.
 */
export async function shutDown(pid: number, clusterDir: string, exited: Promise<unknown>): Promise<void> {
  if (await endsWithin(exited, 0)) return;
  const isReady = (await readPidFile(clusterDir))?.ready === true;
  for (const [signal, ms] of isReady ? steps : steps.slice(1)) {
    signalProcess(pid, signal);
    if (await endsWithin(exited, ms)) return;
  }
}

async function endsWithin(exited: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  const late = sleep(ms, false, { signal: timer.signal });
  return Promise.race([exited.then(() => true), late]).finally(() => timer.abort());
}

/**
 * A process that outlives us only to stop the postmaster: it reads from a pipe whose other end we alone hold, so it sees
 * our end however we end, by SIGKILL too. To be killed once the postmaster has gone.
 */
export function startWatchdog(pid: number): ChildProcess {
  const command = ["sh", "-c", 'read -r _; kill -INT "$1"', "keyhold-watchdog", String(pid)];
  const child = startProgram(ownOsUser.server, command, ["pipe", "ignore", "ignore"]);
  child.on("error", () => {});
  child.stdin?.on("error", () => {});
  return child;
}
