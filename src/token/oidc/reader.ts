import type { Clock } from "../../lib/clock.ts";

export type Fetch = typeof globalThis.fetch;

/** Thrown if the issuer is unreachable or its response is unusable, so that a token can be neither accepted nor rejected. */
export class IssuerUnavailable extends Error {
  override readonly name = "IssuerUnavailable";
}

/** Reads a JSON document from a URL and converts it with `parse`, which may throw. */
export type DocumentReader = <T>(url: string, signal: AbortSignal, parse: (document: unknown) => T) => Promise<T>;

export interface ReaderOptions {
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** Milliseconds after a failure during which further reads fail immediately (circuit breaker). */
  readonly retryPause: number;
}

/** Returns a reader that rejects with `IssuerUnavailable` only. */
export function createReader({ fetch, clock, retryPause }: ReaderOptions): DocumentReader {
  let failure: { readonly error: IssuerUnavailable; readonly time: number } | undefined;
  return async (url, signal, parse) => {
    if (failure !== undefined && isWithin(clock.now() - failure.time, retryPause)) throw failure.error;
    try {
      const document = parse(await fetchJson(fetch, url, signal));
      failure = undefined;
      return document;
    } catch (cause) {
      const error = new IssuerUnavailable(`cannot read ${url}`, { cause });
      failure = { error, time: clock.now() };
      throw error;
    }
  };
}

/** False if the clock was set back, which ends the pause. */
function isWithin(elapsed: number, pause: number): boolean {
  return elapsed >= 0 && elapsed < pause;
}

/** Follows no redirects: only the issuer itself is trusted. */
async function fetchJson(fetch: Fetch, url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { headers: { accept: "application/json" }, redirect: "manual", signal });
  if (response.status === 200) return response.json();
  await response.body?.cancel();
  throw new Error(`the answer is ${response.status}, not 200`);
}
