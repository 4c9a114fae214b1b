import fc from "fast-check";
import { type Limit, PERIODS, type Quota, type RateLimit } from "../../src/domain/rate-limit.ts";

/** Any limit of a key. */
export const anyRateLimit: fc.Arbitrary<RateLimit> = fc.record({
  name: fc.string({ unit: fc.constantFrom(..."az_.-"), minLength: 1, maxLength: 63 }),
  quota: fc.integer({ min: 1, max: 1e9 }),
  window: fc.integer({ min: 1_000, max: 2_678_400_000 }),
  burst: fc.integer({ min: 1, max: 1e9 }),
  enforcement: fc.constantFrom("ENFORCED", "SHADOW"),
  onDemand: fc.boolean(),
  onOutage: fc.constantFrom("DENY", "ALLOW"),
});

/** The rate limits of a key. */
export const anyRateLimits = fc.option(fc.array(anyRateLimit, { minLength: 1, maxLength: 8 }));

export const anyQuota: fc.Arbitrary<Quota> = fc.record({
  name: fc.string({ unit: fc.constantFrom(..."az_.-"), minLength: 1, maxLength: 63 }),
  limit: fc.integer({ min: 1, max: 1e9 }),
  period: fc.constantFrom(...PERIODS),
  anchorTime: fc.integer({ min: -1e12, max: 1e13 }),
  adjustTime: fc.option(fc.integer({ min: 1, max: 1e13 })),
});

/** The quotas of a key. */
export const anyQuotas = fc.option(fc.array(anyQuota, { minLength: 1, maxLength: 8 }));

export const anyLimit: fc.Arbitrary<Limit> = fc.oneof(anyRateLimit, anyQuota);
