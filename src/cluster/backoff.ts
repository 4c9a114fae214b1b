/** First and maximum delay in milliseconds: while the database refuses connections, and while it does not answer. */
const REFUSED = { first: 20, max: 200 };
const SILENT = { first: 250, max: 2_000 };

/**
 * Exponential backoff with jitter for attempts to reach the database. One that refuses connections is retried soon, to reconnect quickly
 * after a restart. One that does not answer, for example while a synchronous standby is unreachable, may keep a backend busy for each
 * attempt, so it is retried rarely.
 */
export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  /** `random` returns a number in [0, 1). */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /**
   * Returns the delay until the next attempt in milliseconds. It doubles with each failure; the jitter subtracts up to a quarter, so that
   * nodes do not retry at the same time.
   */
  next(isSilent: boolean): number {
    const { first, max } = isSilent ? SILENT : REFUSED;
    const delay = Math.min(first * 2 ** this.#failures++, max);
    return delay * (1 - this.#random() / 4);
  }

  reset(): void {
    this.#failures = 0;
  }
}
