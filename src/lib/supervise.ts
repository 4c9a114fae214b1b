import { setTimeout as sleep } from "node:timers/promises";

/** Something that runs beside us, such as a process. */
export interface Running {
  readonly pid: number;
  /** How it ended, in words, as soon as it has ended. Never rejects. */
  readonly exited: Promise<string>;
  /** Why it is to be replaced, in words, as soon as it has failed; it may take its time to end. Never rejects. */
  readonly failed?: Promise<string>;
  stop(): Promise<void>;
}

/** What is started again whenever it ends without having been told to. */
export interface Supervised {
  /** Of the process that runs, or ran last. */
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts it; when `signal` is aborted, the start is to be given up. */
export type Start = (signal: AbortSignal) => Promise<Running>;

type Log = (level: "info" | "error", message: string) => void;

/** The wait before each attempt in a row, in milliseconds; the last one stays. */
const backoffMs: readonly number[] = [0, 100, 200, 500, 1_000, 2_000, 5_000];

/**
 * Starts what `name` says and keeps it up.
 *
 * @throws what `start` throws the first time. Later failures go to the log, and the next attempt follows.
 */
export async function supervise(name: string, start: Start, log: Log): Promise<Supervised> {
  const stopping = new AbortController();
  let current = await start(stopping.signal);
  let predecessor: Promise<unknown> | undefined;

  async function keepUp(): Promise<void> {
    for (;;) {
      const why = await endOrFailure(current);
      if (stopping.signal.aborted) return;
      log("error", why);
      // One at the most ends beside its successor: failures that follow each other must not make more and more processes.
      await predecessor;
      predecessor = current.exited;
      current = await startAgain(start, log, stopping.signal);
      if (stopping.signal.aborted) return current.stop();
      log("info", `${name} accepts connections again: process ${current.pid}`);
    }
  }

  function endOrFailure({ exited, failed }: Running): Promise<string> {
    const ended = exited.then((how) => `${name} ended by itself: ${how}. Starting it again`);
    const replaced = failed?.then((why) => `${name} failed: ${why}. Starting another in its place`);
    return replaced === undefined ? ended : Promise.race([ended, replaced]);
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
async function startAgain(start: Start, log: Log, signal: AbortSignal): Promise<Running> {
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
