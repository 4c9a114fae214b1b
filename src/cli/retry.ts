import { Code, ConnectError } from "@connectrpc/connect";
import { errorReason } from "../client/errors.ts";
import { retryAfter } from "../client/retries.ts";
import { backoffDelay } from "../lib/backoff.ts";
import { sleep } from "../lib/sleep.ts";

export interface RetryOptions {
  /** How long to retry while the server is unreachable, in milliseconds. */
  readonly retryFor: number;
  /** Called before each backoff. */
  readonly onUnreachable: (error: ConnectError) => void;
  /** Stops the backoff; the call then rejects with its reason, by default an `AbortError`. */
  readonly signal: AbortSignal;
}

/** Errors after which a retry may succeed: server, database or network may be temporarily unreachable. */
const TRANSIENT: readonly Code[] = [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal];

export function isTransient(error: unknown): error is ConnectError {
  if (!(error instanceof ConnectError)) return false;
  return TRANSIENT.includes(error.code) || errorReason(error) === "RATE_LIMITED";
}

const BACKOFF = { first: 100, max: 5_000 };

/** Repeats an idempotent call while its errors are temporary, with exponential backoff. */
export async function withRetries<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const deadline = performance.now() + options.retryFor;
  for (let failures = 1; ; failures++) {
    try {
      return await call();
    } catch (error) {
      if (!isTransient(error)) throw error;
      const delay = retryAfter(error) + backoffDelay(failures, BACKOFF);
      if (performance.now() + delay > deadline) throw error;
      options.onUnreachable(error);
      await sleep(delay, options.signal);
    }
  }
}
