import fc from "fast-check";
import type { RateLimit } from "../../src/domain/rate-limit.ts";

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

/** The limits of a key. */
export const anyRateLimits = fc.option(fc.array(anyRateLimit, { minLength: 1, maxLength: 8 }));
