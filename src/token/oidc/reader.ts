import type { Clock } from "../../lib/clock.ts";

export type Fetch = typeof globalThis.fetch;

/** The issuer could not be asked, or its answer was of no use: nothing can be said of the token. */
export class IssuerUnavailable extends Error {
  override readonly name = "IssuerUnavailable";
}

/** Reads a JSON document by its URL and makes of it what `parse` does, which may throw. */
export type DocumentReader = <T>(url: string, signal: AbortSignal, parse: (document: unknown) => T) => Promise<T>;

export interface ReaderOptions {
  readonly fetch: Fetch;
  readonly clock: Clock;
  /** Milliseconds after a failure in which every further read fails at once, so that a dead issuer is not beset. */
  readonly retryPause: number;
}

/** A reader that rejects with `IssuerUnavailable` alone. */
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

/** A clock that was set back ends the pause. */
function isWithin(elapsed: number, pause: number): boolean {
  return elapsed >= 0 && elapsed < pause;
}

/** Follows no redirect: what the issuer does not say itself is not believed. */
async function fetchJson(fetch: Fetch, url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { headers: { accept: "application/json" }, redirect: "manual", signal });
  if (response.status === 200) return response.json();
  await response.body?.cancel();
  throw new Error(`the answer is ${response.status}, not 200`);
}
