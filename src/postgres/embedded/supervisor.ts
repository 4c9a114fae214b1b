import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "./log.ts";
import type { Postmaster } from "./postmaster.ts";

/** A server that is started again whenever it ends without having been told to. */
export interface Supervised {
  /** Of the server that runs, or ran last. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** The wait before each attempt in a row, in milliseconds; the last one stays. */
const backoffMs: readonly number[] = [0, 100, 200, 500, 1_000, 2_000, 5_000];

/**
 * Starts a server and keeps it up. Everything that it acknowledged survives its crash: that is PostgreSQL's own recovery.
 *
 * @throws what `start` throws the first time. Later failures go to the log, and the next attempt follows.
 */
export async function supervise(start: (signal: AbortSignal) => Promise<Postmaster>, log: Log): Promise<Supervised> {
  const stopping = new AbortController();
  let current = await start(stopping.signal);

  async function keepUp(): Promise<void> {
    for (;;) {
      const how = await current.exited;
      if (stopping.signal.aborted) return;
      log("error", `PostgreSQL ended by itself: ${how}. Starting it again`);
      current = await startAgain(start, log, stopping.signal);
      if (stopping.signal.aborted) return current.stop();
      log("info", `PostgreSQL accepts connections again: process ${current.pid}`);
    }
  }

  const kept = keepUp().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    get pid() {
      return current.pid;
    },
    async stop() {
      stopping.abort();
      await current.stop();
      await kept;
    },
  };
}

/** Rejects only when `signal` is aborted. */
async function startAgain(
  start: (signal: AbortSignal) => Promise<Postmaster>,
  log: Log,
  signal: AbortSignal,
): Promise<Postmaster> {
  for (let attempt = 0; ; attempt++) {
    await sleep(backoffMs[attempt] ?? backoffMs.at(-1), undefined, { signal });
    try {
      return await start(signal);
    } catch (error) {
      signal.throwIfAborted();
      log("error", String(error));
    }
  }
}
