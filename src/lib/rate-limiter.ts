import type { Monotonic } from "./clock.ts";
import { ClockCache } from "./clock-cache.ts";

export interface RateLimiterOptions {
  /** Tokens per second. */
  readonly rate: number;
  /** Capacity of a bucket in tokens. */
  readonly burst: number;
  /** Buckets kept, about 200 bytes each. An evicted bucket is full when it is next used. */
  readonly maxBuckets: number;
  readonly monotonic: Monotonic;
}

/**
 * Token buckets by name, as GCRA (ATM Forum, Traffic Management 4.0, §4.4.2): the state of a bucket is the time at which it will be full,
 * one number, so no timer refills it.
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

  /** Takes a token from a bucket. Returns false if it is empty. */
  take(bucket: string): boolean {
    const now = this.#monotonic();
    const fullAt = Math.max(now, this.#fullAt.get(bucket) ?? 0) + this.#interval;
    if (fullAt - now > this.#capacity) return false;
    this.#fullAt.set(bucket, fullAt);
    return true;
  }
}
