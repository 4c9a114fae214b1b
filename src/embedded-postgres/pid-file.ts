import { join, resolve } from "node:path";
import { readIfExists } from "../lib/whole-file.ts";
import { poll } from "./process.ts";

/** The contents of `postmaster.pid` (PostgreSQL, src/include/utils/pidfile.h). */
export type PidFile = NonNullable<ReturnType<typeof parsePidFile>>;

export function pidFilePath(clusterDir: string): string {
  return join(clusterDir, "postmaster.pid");
}

/** Reads the cluster's `postmaster.pid`. Returns undefined if there is none or if it does not name a process yet. */
export async function readPidFile(clusterDir: string): Promise<PidFile | undefined> {
  return parsePidFile((await readIfExists(pidFilePath(clusterDir))) ?? "", clusterDir);
}

/** Lines: 1 pid (negative for a single-user server), 5 socket folder as configured, absent before it has one, 8 status, padded. */
export function parsePidFile(text: string, clusterDir: string) {
  const lines = text.split("\n");
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isSafeInteger(pid) || pid === 0) return undefined;
  const socketDir = lines[4] ? resolve(clusterDir, lines[4]) : undefined;
  return { pid, socketDir, ready: lines[7]?.trim() === "ready" };
}

/**
 * Resolves when the postmaster `pid` accepts connections, or with the result of `ended` if it ends before that. Rejects when `limit` is
 * aborted.
 */
export function untilReady<T>(
  clusterDir: string,
  pid: number,
  ended: (signal: AbortSignal) => Promise<T>,
  limit: AbortSignal,
): Promise<PidFile | T> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, limit]);
  const readyFile = async () => {
    const file = await readPidFile(clusterDir);
    return file?.pid === pid && file.ready ? file : undefined;
  };
  return Promise.race([poll(readyFile, signal), ended(signal)]).finally(() => over.abort());
}
