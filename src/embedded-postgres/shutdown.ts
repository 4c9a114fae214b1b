import type { ChildProcess } from "node:child_process";
import { withTimeout } from "../lib/with-timeout.ts";
import { readPidFile } from "./pid-file.ts";
import { asOurselves, signalProcess, startProgram } from "./process.ts";

/**
 * Fast shutdown, immediate shutdown (PostgreSQL docs, 18.5) and SIGKILL, with their time limits. A fast shutdown during a crash never
 * ends (PostgreSQL 18.4). After an immediate one the next start performs crash recovery, and nothing committed is lost.
 */
const steps: readonly (readonly [NodeJS.Signals, number])[] = [
  ["SIGINT", 15_000],
  ["SIGQUIT", 10_000],
  ["SIGKILL", 10_000],
];

/**
 * Stops the postmaster `pid` of a cluster and resolves when `exited` has resolved. One that is still in recovery is stopped
 * immediately.
 */
export async function shutDown(pid: number, clusterDir: string, exited: Promise<unknown>): Promise<void> {
  if (await endsWithin(exited, 0)) return;
  const isReady = (await readPidFile(clusterDir))?.ready === true;
  for (const [signal, ms] of isReady ? steps : steps.slice(1)) {
    signalProcess(pid, signal);
    if (await endsWithin(exited, ms)) return;
  }
}

function endsWithin(exited: Promise<unknown>, ms: number): Promise<boolean> {
  return withTimeout(
    exited.then(() => true),
    ms,
    () => false,
  );
}

/**
 * Starts a process that stops the postmaster when this process ends, even by SIGKILL: it reads from a pipe whose other end only
 * this process holds. Kill it when the postmaster has ended.
 */
export function startWatchdog(pid: number): ChildProcess {
  const command = ["sh", "-c", 'read -r _; kill -INT "$1"', "keyhold-watchdog", String(pid)];
  const child = startProgram(asOurselves, command, ["pipe", "ignore", "ignore"]);
  child.on("error", () => {});
  child.stdin?.on("error", () => {});
  return child;
}
