import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { backoffDelay } from "./backoff.ts";

export interface Running {
  readonly pid: number;
  /** Resolves with a description of the exit. Never rejects. */
  readonly exited: Promise<string>;
  /** Resolves with the reason when it must be replaced, possibly before it exits. Never rejects. */
  readonly failed?: Promise<string>;
  stop(): Promise<void>;
}

/** A `Running` that is restarted when it exits or fails, until `stop`. */
export type Supervised = Awaited<ReturnType<typeof supervise>>;

/** Starts the process; aborts the start when `signal` aborts. */
export type Start = (signal: AbortSignal) => Promise<Running>;

type Log = (level: "info" | "error", message: string) => void;

const BACKOFF = { first: 100, max: 5_000 };

/**
 * Starts a process and restarts it with backoff whenever it exits or fails. `name` is for the log.
 *
 * @throws the error of the first `start`. Later errors are logged, and the start is retried.
 */
export async function supervise(name: string, start: Start, log: Log) {
  const stopping = new AbortController();
  let current = await start(stopping.signal);
  let predecessor: Promise<unknown> | undefined;

  async function keepUp(): Promise<void> {
    for (;;) {
      const why = await endOrFailure(current);
      if (stopping.signal.aborted) return;
      log("error", why);
      // At most one failed process may still be exiting, or repeated failures would accumulate processes.
      await predecessor;
      predecessor = current.exited;
      current = await startAgain(start, log, stopping.signal);
      if (stopping.signal.aborted) return current.stop();
      log("info", `${name} is accepting connections again (pid ${current.pid})`);
    }
  }

  function endOrFailure({ exited, failed }: Running): Promise<string> {
    const ended = exited.then((how) => `${name} exited unexpectedly: ${how}; restarting`);
    const replaced = failed?.then((why) => `${name} failed: ${why}; starting a replacement`);
    return replaced === undefined ? ended : Promise.race([ended, replaced]);
  }

  const kept = keepUp().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return {
    /** The process that runs now or ran last. */
    get pid() {
      return current.pid;
    },
    async stop(): Promise<void> {
      stopping.abort();
      await current.stop();
      await kept;
    },
  };
}

/** Calls `start` at once, and again with backoff after each failure. Rejects only when `signal` aborts. */
async function startAgain(start: Start, log: Log, signal: AbortSignal): Promise<Running> {
  for (let failures = 1; ; failures++) {
    signal.throwIfAborted();
    try {
      return await start(signal);
    } catch (error) {
      signal.throwIfAborted();
      log("error", String(error));
    }
    await sleep(backoffDelay(failures, BACKOFF), undefined, { signal });
  }
}

/** Resolves with a description of how the process ended, or why it could not be started. */
export function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    // An undeliverable message or signal is an error event too.
    child.on("error", (error) => child.pid ?? resolve(`error "${error.message}"`));
    child.once("exit", (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  });
}
