import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";

export interface RetryOptions {
  /** How long to retry while the server is unreachable, in milliseconds. */
  readonly retryFor: number;
  /** Called before each backoff. */
  readonly onUnreachable: (error: ConnectError) => void;
  /** Stops the backoff, with an `AbortError`. */
  readonly signal: AbortSignal;
}

/** Errors after which a retry may succeed: server, database or network may be temporarily unreachable. */
const TRANSIENT: readonly Code[] = [Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.Internal];

/** Backoff in milliseconds. */
const [INITIAL_BACKOFF, MAX_BACKOFF] = [100, 5_000];

/** Repeats an idempotent call while its errors are temporary, with exponential backoff. */
export async function withRetries<T>(call: () => Promise<T>, options: RetryOptions): Promise<T> {
  const deadline = performance.now() + options.retryFor;
  for (let backoff = INITIAL_BACKOFF; ; backoff = Math.min(backoff * 2, MAX_BACKOFF)) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof ConnectError) || !TRANSIENT.includes(error.code) || performance.now() + backoff > deadline)
        throw error;
      options.onUnreachable(error);
      // Half jitter, so that clients that failed together do not retry together.
      await sleep(backoff * (0.5 + Math.random() / 2), undefined, { signal: options.signal });
    }
  }
}
