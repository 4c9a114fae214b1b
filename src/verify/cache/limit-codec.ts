import type { Limit, Quota, RateLimit } from "../../domain/rate-limit.ts";

/** A limit in a cached entry: a quota has the name of its period where a rate limit has its window. Trailing values that are the default are left out. */
type Encoded = EncodedRateLimit | EncodedQuota;
type EncodedQuota = readonly [
  name: string,
  limit: number,
  period: Quota["period"],
  anchorTime: number,
  adjustTime?: number,
];
type EncodedRateLimit = readonly [name: string, quota: number, window: number, burst?: number, flags?: number];

const IS_SHADOW = 1;
const IS_ON_DEMAND = 2;
const ALLOWS_IN_OUTAGE = 4;

export function encodeLimit(limit: Limit): Encoded {
  if (!("period" in limit)) return encodeRateLimit(limit);
  const { name, limit: max, period, anchorTime, adjustTime } = limit;
  return adjustTime === null ? [name, max, period, anchorTime] : [name, max, period, anchorTime, adjustTime];
}

function encodeRateLimit({ name, quota, window, burst, enforcement, onDemand, onOutage }: RateLimit): EncodedRateLimit {
  const flags =
    (enforcement === "SHADOW" ? IS_SHADOW : 0) |
    (onDemand ? IS_ON_DEMAND : 0) |
    (onOutage === "ALLOW" ? ALLOWS_IN_OUTAGE : 0);
  if (flags !== 0) return [name, quota, window, burst, flags];
  return burst === quota ? [name, quota, window] : [name, quota, window, burst];
}

export function decodeLimit(encoded: Encoded): Limit {
  return Object.freeze(isQuota(encoded) ? decodeQuota(encoded) : decodeRateLimit(encoded));
}

function isQuota(encoded: Encoded): encoded is EncodedQuota {
  return typeof encoded[2] === "string";
}

function decodeQuota([name, limit, period, anchorTime, adjustTime]: EncodedQuota): Quota {
  return { name, limit, period, anchorTime, adjustTime: adjustTime ?? null };
}

function decodeRateLimit([name, quota, window, burst = quota, flags = 0]: EncodedRateLimit): RateLimit {
  return {
    ...{ name, quota, window, burst, onDemand: (flags & IS_ON_DEMAND) !== 0 },
    enforcement: (flags & IS_SHADOW) === 0 ? "ENFORCED" : "SHADOW",
    onOutage: (flags & ALLOWS_IN_OUTAGE) === 0 ? "DENY" : "ALLOW",
  };
}
