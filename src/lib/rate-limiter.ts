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
  /** Returns the number of limiters that divide the rate and the burst among them; 1 by default. Each admits at least one token per burst. */
  readonly shares?: () => number;
}

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Creates token buckets by name, as GCRA (ATM Forum, Traffic Management 4.0, §4.4.2): the state of a bucket is the time at which it will be
 * full, one number, so no timer refills it.
 */
export function createRateLimiter({ rate, burst, maxBuckets, monotonic, shares = () => 1 }: RateLimiterOptions) {
  /** Milliseconds in which an empty bucket fills, with any number of shares. */
  const capacity = (burst * 1000) / rate;
  const fullAt = new ClockCache<number>(maxBuckets);
  const interval = () => Math.min(capacity, (shares() * 1000) / rate);
  return {
    /** Returns the milliseconds until a bucket has this many tokens, or is half full; 0: it is. */
    wait(bucket: string, tokens = 1): number {
      const now = monotonic();
      const wanted = Math.max(interval(), Math.min(tokens * interval(), capacity / 2));
      return Math.max(0, Math.max(now, fullAt.get(bucket) ?? 0) + wanted - now - capacity);
    },
    /** Takes a token from a bucket. Returns false if it is empty. */
    take(bucket: string): boolean {
      const now = monotonic();
      const next = Math.max(now, fullAt.get(bucket) ?? 0) + interval();
      if (next - now > capacity) return false;
      fullAt.set(bucket, next);
      return true;
    },
  };
}
