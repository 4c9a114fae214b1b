import type { Monotonic } from "./clock.ts";
import { ClockCache } from "./clock-cache.ts";

interface RateLimiterOptions {
  /** Tokens per second. */
  readonly rate: number;
  /** Capacity of a bucket in tokens. */
  readonly burst: number;
  /** Buckets kept, about 200 bytes each. An evicted bucket is full when it is next used. */
  readonly maxBuckets: number;
  readonly monotonic: Monotonic;
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Creates token buckets by name, as GCRA (ATM Forum, Traffic Management 4.0, §4.4.2): the state of a bucket is the time at which it will be
 * full, one number, so no timer refills it.
 */
export function createRateLimiter({ rate, burst, maxBuckets, monotonic }: RateLimiterOptions) {
  const interval = 1000 / rate;
  const capacity = burst * interval;
  const fullAt = new ClockCache<number>(maxBuckets);
  return {
    /** Takes a token from a bucket. Returns false if it is empty. */
    take(bucket: string): boolean {
      const now = monotonic();
      const next = Math.max(now, fullAt.get(bucket) ?? 0) + interval;
      if (next - now > capacity) return false;
      fullAt.set(bucket, next);
      return true;
    },
  };
}
