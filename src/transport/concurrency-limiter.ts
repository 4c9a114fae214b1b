import { KeyholdError } from "../domain/errors.ts";
import { share } from "../lib/memoize.ts";

/**
 * Calls that wait, in units: a single one is one, a batch one for each ten of its items, which is about what they cost. One process
 * completes some 5,000 a second, so 1,000 are 0.2 s of work and 20 MB. More would only lengthen the wait: 64 keep one process busy,
 * and a service with 437 clients has some 300 that wait.
 */
const MAX_UNITS = 1_000;

/** One for all, frozen: a stack and a response for each would make a refusal cost as much as the work that it spares. */
const OVERLOADED = share(new KeyholdError("OVERLOADED", "too many calls wait already; come again in a second"));

/**
 * Bounds the calls of this process that wait for something: the database, or an issuer of access tokens. What is answered from
 * memory, in one turn of the event loop, never comes to it, and is never refused: a refusal would cost as much.
 */
export class ConcurrencyLimiter {
  readonly #max: number;
  #units = 0;
  #refusals = 0;

  constructor(max = MAX_UNITS) {
    this.#max = max;
  }

  /** What waits now, and what may wait, in units. */
  get units(): number {
    return this.#units;
  }

  get max(): number {
    return this.#max;
  }

  /** Calls that were refused as OVERLOADED, here or by what they would have waited for. */
  get rejections(): number {
    return this.#refusals;
  }

  countRejection(): void {
    this.#refusals++;
  }

  /** For work that is known to wait: before it begins. Throws `OVERLOADED`. */
  assertCapacity(): void {
    if (this.#units >= this.#max) throw OVERLOADED;
  }

  /** Counts work until it ends. Over the bound its outcome is dropped: only for work that changes nothing. */
  async track<T>(work: Promise<T>, units = 1): Promise<T> {
    if (this.#units >= this.#max) {
      work.catch(() => undefined);
      throw OVERLOADED;
    }
    this.#units += units;
    try {
      return await work;
    } finally {
      this.#units -= units;
    }
  }
}
