type Fetch = typeof globalThis.fetch;

export interface CountedFetch {
  readonly fetch: Fetch;
  /** Of each answer, in order. */
  readonly statuses: number[];
  /** How many requests have left. */
  count(): number;
  /** Sends what comes from now on another way. */
  use(next: Fetch): void;
}

/** `fetch` that counts, and may be turned elsewhere. */
export function countedFetch(): CountedFetch {
  let [count, send]: [number, Fetch] = [0, globalThis.fetch];
  const statuses: number[] = [];
  return {
    statuses,
    count: () => count,
    use: (next) => {
      send = next;
    },
    fetch: async (...request) => {
      count++;
      const response = await send(...request);
      statuses.push(response.status);
      return response;
    },
  };
}

/** Never answers; rejects when its time is over. */
export const hungFetch: Fetch = (_, init) =>
  new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

/** Answers with these header fields too. */
export function withHeaders(more: Record<string, string>): Fetch {
  return async (...request) => {
    const { status, headers, body } = await globalThis.fetch(...request);
    return new Response(body, { status, headers: { ...Object.fromEntries(headers), ...more } });
  };
}

/** A clock that stands until it is moved, in milliseconds. */
export function handClock() {
  let time = 1_000_000;
  return {
    now: () => time,
    pass: (milliseconds: number) => {
      time += milliseconds;
    },
  };
}
