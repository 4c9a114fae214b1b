import { backoffDelay } from "../../lib/backoff.ts";

const BACKOFF = { first: 25, max: 500 };

/**
 * Exponential backoff for connecting to a database that refuses connections. Between attempts callers fail at once with the last error,
 * because thousands of calls per second must not become as many attempts, which would slow down the restart of the database. Pools of one
 * database share it: when one has connected, all may try.
 */
export class ConnectBackoff {
  #failures = 0;
  #next = 0;
  #failure: Error | null = null;

  /** Returns the last error if it is too early for another attempt, else null. `now` is `performance.now()`. */
  lastFailure(now: number): Error | null {
    return now < this.#next ? this.#failure : null;
  }

  /** Concurrent failures count as one. */
  failed(failure: Error, now: number): void {
    if (now < this.#next) return;
    this.#failure = failure;
    // No jitter: attempts begin with calls of clients, which are spread already.
    this.#next = now + backoffDelay(++this.#failures, BACKOFF, () => 0);
  }

  succeeded(): void {
    this.#failures = 0;
    this.#next = 0;
    this.#failure = null;
  }
}
