type Fetch = typeof globalThis.fetch;

export interface CountedFetch {
  readonly fetch: Fetch;
  /** The statuses of the responses, in order. */
  readonly statuses: number[];
  /** Number of sent requests. */
  count(): number;
  /** Sends further requests another way. */
  use(next: Fetch): void;
}

/** A `fetch` that counts requests and can be redirected. */
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

/** Never responds; rejects when its signal aborts. */
export const hungFetch: Fetch = (_, init) =>
  new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason)));

/** Adds these header fields to responses. */
export function withHeaders(more: Record<string, string>): Fetch {
  return async (...request) => {
    const { status, headers, body } = await globalThis.fetch(...request);
    return new Response(body, { status, headers: { ...Object.fromEntries(headers), ...more } });
  };
}

/** A manual clock, in milliseconds. */
export function handClock() {
  let time = 1_000_000;
  return {
    now: () => time,
    pass: (milliseconds: number) => {
      time += milliseconds;
    },
  };
}
