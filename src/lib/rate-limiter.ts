import { ClockCache } from "./clock-cache.ts";
import type { Monotonic } from "./monotonic.ts";

export interface RateLimiterOptions {
  /** Tokens per second. */
  readonly rate: number;
  /** Tokens that a bucket holds. */
  readonly burst: number;
  /** Buckets that are remembered, some 200 bytes each. One that is forgotten is full again. */
  readonly maxBuckets: number;
  readonly monotonic: Monotonic;
}

/**
 * Token buckets by name, in the form of GCRA (ATM Forum, Traffic Management 4.0, §4.4.2): a bucket is the one time at which it will be
 * full, so that it takes one number and no timer refills it.
 */
export class RateLimiter {
  readonly #interval: number;
  readonly #capacity: number;
  readonly #monotonic: Monotonic;
  readonly #fullAt: ClockCache<number>;

  constructor({ rate, burst, maxBuckets, monotonic }: RateLimiterOptions) {
    this.#interval = 1000 / rate;
    this.#capacity = burst * this.#interval;
    this.#monotonic = monotonic;
    this.#fullAt = new ClockCache(maxBuckets);
  }

  /** Takes a token from the bucket. Returns whether there was one. */
  take(bucket: string): boolean {
    const now = this.#monotonic();
    const fullAt = Math.max(now, this.#fullAt.get(bucket) ?? 0) + this.#interval;
    if (fullAt - now > this.#capacity) return false;
    this.#fullAt.set(bucket, fullAt);
    return true;
  }
}
