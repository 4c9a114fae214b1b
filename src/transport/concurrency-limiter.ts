import { KeyholdError } from "../domain/errors.ts";
import { share } from "../lib/memoize.ts";

/**
 * Maximum of waiting calls in units: a call is one, a batch one per ten items, which is about their cost. One process completes about
 * 5,000 per second, so 1,000 units are 0.2 s of work and 20 MB. A larger value would only increase latency: 64 calls keep one process
 * busy, and a service with 437 clients has about 300 waiting.
 */
const MAX_UNITS = 1_000;

/** Shared: a stack and a response for each rejection would cost as much as the work that it avoids. */
const OVERLOADED = share(new KeyholdError("OVERLOADED", "too many calls wait already; come again in a second"));

/**
 * Load shedding: bounds the calls of this process that wait for the database or for an issuer of access tokens. A call that is answered
 * from the cache within one tick is never counted and never rejected, because rejecting it would cost as much.
 */
export class ConcurrencyLimiter {
  readonly max: number;
  /** Units that wait now. */
  units = 0;
  /** Calls that were rejected with OVERLOADED, here or further down. */
  rejections = 0;

  constructor(max = MAX_UNITS) {
    this.max = max;
  }

  /** Rejects work that is known to wait before it starts. Throws `OVERLOADED`. */
  assertCapacity(): void {
    if (this.units >= this.max) throw OVERLOADED;
  }

  /** Counts work until it ends. Above the limit its result is dropped: only for work without side effects. */
  async track<T>(work: Promise<T>, units = 1): Promise<T> {
    if (this.units >= this.max) {
      work.catch(() => undefined);
      throw OVERLOADED;
    }
    this.units += units;
    try {
      return await work;
    } finally {
      this.units -= units;
    }
  }
}
