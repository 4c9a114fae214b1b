import type { CallLimiters } from "../auth/call-limits.ts";
import type { ChangeLimit } from "../auth/change-limits.ts";
import type { FailureLimiters } from "../auth/failed-verifications.ts";
import type { Membership } from "../cluster/membership.ts";
import type { RateLimit } from "../domain/rate-limit.ts";
import { systemMonotonic } from "../lib/clock.ts";
import { createRateLimiter, type RateLimiter } from "../lib/rate-limiter.ts";
import type { Config } from "./config/config.ts";

/** Seconds for which a bucket may be emptied faster than it fills. */
const BURST_TIME = 10;

/** Seconds: so long that leased tokens have the longest lifetime. */
const WINDOW = 60;

/** Maximum number of addresses and callers in each limiter: 10 MB. */
const MAX_BUCKETS = 50_000;

/** Keys of the largest batch, which a bucket must admit. */
const MAX_IMPORT = 1_000;

/** Keyhold's limits on its own callers (docs/limits.md); null: none. */
export interface OwnLimiters {
  readonly calls: CallLimiters;
  readonly verifications: FailureLimiters;
  readonly changes: Readonly<Record<ChangeLimit, RateLimit | null>>;
}

/** Each process has its part of the limits on what fails anyway. That on public calls is its own: a part would deny clients of a single process. */
export function createOwnLimiters(config: Config, membership: Pick<Membership, "nodes">): OwnLimiters {
  let nodes = 1;
  const shares = () => {
    nodes = membership.nodes ?? nodes;
    return nodes;
  };
  return {
    calls: { public: limiter(config.publicRate), failures: limiter(config.failureRate, shares) },
    verifications: {
      failed_verifications: limiter(config.verificationFailureRate, shares),
      caller_failed_verifications: limiter(config.callerVerificationFailureRate, shares),
    },
    changes: {
      changes: limitOf("changes", config.changeRate),
      imports: limitOf("imports", config.importRate, MAX_IMPORT),
    },
  };
}

function limiter(rate: number | null, shares?: () => number): RateLimiter | null {
  if (rate === null) return null;
  const options = { rate, burst: rate * BURST_TIME, maxBuckets: MAX_BUCKETS, monotonic: systemMonotonic };
  return createRateLimiter(shares === undefined ? options : { ...options, shares });
}

function limitOf(name: ChangeLimit, rate: number | null, minBurst = 1): RateLimit | null {
  if (rate === null) return null;
  const quota = rate * WINDOW;
  const policies = { enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" } as const;
  return { name, quota, window: WINDOW * 1000, burst: Math.max(rate * BURST_TIME, minBurst), ...policies };
}
