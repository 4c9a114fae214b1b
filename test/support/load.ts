/** Calls that continue until they are stopped. */
export interface Load {
  /** What the calls that failed said. */
  readonly failures: readonly string[];
  readonly count: () => number;
  /** Resolves when as many more calls have been answered. */
  more(calls: number): Promise<void>;
  stop(): Promise<void>;
}

/** So many callers, each of which calls again when it has its answer: true, or what is wrong with it. */
export function startLoad(callers: number, call: () => Promise<true | string>): Load {
  const over = new AbortController();
  const failures: string[] = [];
  let count = 0;
  let wanted: { readonly count: number; readonly reached: () => void } | undefined;
  const run = async () => {
    while (!over.signal.aborted) {
      const said = await call().catch((error: unknown) => String(error));
      if (said !== true) failures.push(said);
      if (++count === wanted?.count) wanted.reached();
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
