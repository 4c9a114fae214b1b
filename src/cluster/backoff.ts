/** Milliseconds until the next attempt: while the database refuses at once, and while it does not answer. */
const REFUSED = { first: 20, max: 200 };
const SILENT = { first: 250, max: 2_000 };

/**
 * How long to wait before the next attempt to reach the database. One that refuses is tried again soon, to be there when it comes back. One
 * that does not answer may keep a backend for each attempt until it does, as while a synchronous standby is unreachable.
 */
export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  /** `random` returns a number from 0 to 1, without 1. */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /** Returns the milliseconds until the next attempt: twice as many with each failure, and up to a quarter less, so that nodes do not come together. */
  next(isSilent: boolean): number {
    const { first, max } = isSilent ? SILENT : REFUSED;
    const delay = Math.min(first * 2 ** this.#failures++, max);
    return delay * (1 - this.#random() / 4);
  }

  reset(): void {
    this.#failures = 0;
  }
}
