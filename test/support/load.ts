import { setTimeout as sleep } from "node:timers/promises";

/** Calls that are repeated until they are stopped. */
export interface Load {
  /** The problems of failed calls. */
  readonly failures: readonly string[];
  readonly count: () => number;
  /** Resolves when this many more calls have completed. */
  more(calls: number): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts concurrent callers, each of which calls again after a response and a pause in milliseconds; without a pause they take all cores.
 * A call resolves to true, or to a description of its problem.
 */
export function startLoad(callers: number, call: () => Promise<true | string>, pause = 0): Load {
  const over = new AbortController();
  const failures: string[] = [];
  let count = 0;
  let wanted: { readonly count: number; readonly reached: () => void } | undefined;
  const run = async () => {
    while (!over.signal.aborted) {
      const result = await call().catch((error: unknown) => String(error));
      if (result !== true) failures.push(result);
      if (++count === wanted?.count) wanted.reached();
      if (pause > 0) await sleep(pause);
    }
  };
  const running = Array.from({ length: callers }, run);
  return {
    failures,
    count: () => count,
    more: (calls) =>
      new Promise((reached) => {
        wanted = { count: count + calls, reached };
      }),
    stop: async () => {
      over.abort();
      await Promise.all(running);
    },
  };
}
