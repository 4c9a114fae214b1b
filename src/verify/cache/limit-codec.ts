import type { RateLimit } from "../../domain/rate-limit.ts";

/** A limit in a cached entry. Trailing values that are the default are left out. */
type Encoded = readonly [name: string, quota: number, window: number, burst?: number, flags?: number];

const IS_SHADOW = 1;
const IS_ON_DEMAND = 2;
const ALLOWS_IN_OUTAGE = 4;

export function encodeLimit({ name, quota, window, burst, enforcement, onDemand, onOutage }: RateLimit): Encoded {
  const flags =
    (enforcement === "SHADOW" ? IS_SHADOW : 0) |
    (onDemand ? IS_ON_DEMAND : 0) |
    (onOutage === "ALLOW" ? ALLOWS_IN_OUTAGE : 0);
  if (flags !== 0) return [name, quota, window, burst, flags];
  return burst === quota ? [name, quota, window] : [name, quota, window, burst];
}

export function decodeLimit([name, quota, window, burst = quota, flags = 0]: Encoded): RateLimit {
  return Object.freeze({
    ...{ name, quota, window, burst, onDemand: (flags & IS_ON_DEMAND) !== 0 },
    enforcement: (flags & IS_SHADOW) === 0 ? "ENFORCED" : "SHADOW",
    onOutage: (flags & ALLOWS_IN_OUTAGE) === 0 ? "DENY" : "ALLOW",
  });
}
