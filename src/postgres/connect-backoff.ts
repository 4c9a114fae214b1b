/** Milliseconds until the next attempt after the first failed one, and at the most. */
const FIRST_DELAY = 25;
const MAX_DELAY = 500;

/**
 * When to try a database again that refuses connections: soon, then at longer intervals. Between them callers hear at once what the
 * last attempt came to: thousands of calls a second must not be as many attempts, which cost us and the database, when it starts
 * again, more than all else. Pools of one database share it: where one has come through, all may try.
 */
export class ConnectBackoff {
  #delay = FIRST_DELAY;
  #next = 0;
  #failure: Error | null = null;

  /** What the last attempt came to, if it is too early for another; null: try. `now` by `performance.now()`. */
  refusal(now: number): Error | null {
    return now < this.#next ? this.#failure : null;
  }

  /** Several that were under way together count as one. */
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
