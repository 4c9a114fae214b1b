/** First and maximum delay between attempts, in milliseconds. */
const FIRST_DELAY = 25;
const MAX_DELAY = 500;

/**
 * Exponential backoff for connecting to a database that refuses connections. Between attempts callers fail at once with the last error,
 * because thousands of calls per second must not become as many attempts, which would slow down the restart of the database. Pools of one
 * database share it: when one has connected, all may try.
 */
export class ConnectBackoff {
  #delay = FIRST_DELAY;
  #next = 0;
  #failure: Error | null = null;

  /** Returns the last error if it is too early for another attempt, else null. `now` is `performance.now()`. */
  refusal(now: number): Error | null {
    return now < this.#next ? this.#failure : null;
  }

  /** Concurrent failures count as one. */
  failed(failure: Error, now: number): void {
    if (now < this.#next) return;
    this.#failure = failure;
    this.#next = now + this.#delay;
    this.#delay = Math.min(this.#delay * 2, MAX_DELAY);
  }

  succeeded(): void {
    this.#delay = FIRST_DELAY;
    this.#next = 0;
    this.#failure = null;
  }
}
