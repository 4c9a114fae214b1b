import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  OutagePolicy,
  QuotaPeriod,
  type QuotaSchema,
  RateLimitEnforcement,
  type RateLimitSchema,
  type Quota as WireQuota,
  type RateLimit as WireRateLimit,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import type { LimitStatusSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { checkAll } from "../../domain/errors.ts";
import {
  checkQuotas,
  checkRateLimits,
  type LimitStatus,
  type Quota,
  type QuotaInput,
  type RateLimit,
  type RateLimitInput,
} from "../../domain/rate-limit.ts";
import { quotaPeriod } from "./enums.ts";

/** The precision of `reset_time`. */
const SECOND = 1_000;

/** Returns limits as a request has them. The rules of the proto reject unknown values of its enums. */
export function rateLimitInputs(wire: readonly WireRateLimit[]): RateLimitInput[] {
  return wire.map(({ name, quota, window, burst, enforcement, onDemand, onOutage }) => ({
    ...{ name, quota, window, burst, onDemand },
    enforcement: enforcement === RateLimitEnforcement.SHADOW ? "SHADOW" : "ENFORCED",
    onOutage: onOutage === OutagePolicy.ALLOW ? "ALLOW" : "DENY",
  }));
}

/** Returns quotas as a request has them. */
export function quotaInputs(wire: readonly WireQuota[]): QuotaInput[] {
  return wire.map(({ name, limit, period, anchorTime }, index) => {
    return { name, limit, anchorTime, period: quotaPeriod(period, `quotas[${index}].period`) };
  });
}

/** Returns the rate limits and quotas of a request. */
export function limitInputs(request: {
  readonly rateLimits: readonly WireRateLimit[];
  readonly quotas: readonly WireQuota[];
}) {
  return { rateLimits: rateLimitInputs(request.rateLimits), quotas: quotaInputs(request.quotas) };
}

/**
 * Returns the limits of an update, those that it sets; null: the key or actor has none afterwards. Throws `INVALID_ARGUMENT` with every invalid
 * field, whose names begin with `path`.
 */
export function checkLimits(
  { rateLimits, quotas }: { readonly rateLimits?: readonly WireRateLimit[]; readonly quotas?: readonly WireQuota[] },
  path: string,
) {
  const [newLimits, newQuotas] = checkAll(
    () => rateLimits && checkRateLimits(rateLimitInputs(rateLimits), `${path}rate_limits`),
    () => quotas && checkQuotas(quotaInputs(quotas), `${path}quotas`),
  );
  return {
    ...(newLimits !== undefined && { rateLimits: newLimits }),
    ...(newQuotas !== undefined && { quotas: newQuotas }),
  };
}

/** Returns the quotas of a key as messages. */
export function quotas(all: readonly Quota[] | null): MessageInitShape<typeof QuotaSchema>[] {
  return (all ?? []).map(({ name, limit, period, anchorTime }) => {
    return { name, limit, period: QuotaPeriod[period], anchorTime: timestampFromMs(anchorTime) };
  });
}

/** Returns the rate limits of a key as messages. */
export function rateLimits(limits: readonly RateLimit[] | null): MessageInitShape<typeof RateLimitSchema>[] {
  return (limits ?? []).map(({ window, enforcement, onOutage, ...limit }) => ({
    ...limit,
    window: windowText(window),
    enforcement: RateLimitEnforcement[enforcement],
    onOutage: OutagePolicy[onOutage],
  }));
}

/** Returns the states of limits after a verification as messages. */
export function limitStatuses(statuses: readonly LimitStatus[]): MessageInitShape<typeof LimitStatusSchema>[] {
  return statuses.map(({ limit, remaining, resetTime, retryAfter, isExceeded }) => ({
    ...{ name: limit.name, exceeded: isExceeded },
    ...("period" in limit
      ? { quota: limit.limit, period: QuotaPeriod[limit.period] }
      : { quota: limit.quota, window: windowText(limit.window), burst: limit.burst }),
    remaining: remaining ?? undefined,
    resetTime: resetTime === null ? undefined : timestampFromMs(Math.ceil(resetTime / SECOND) * SECOND),
    retryDelay: retryAfter === null ? undefined : durationFromMs(Math.ceil(retryAfter)),
  }));
}

function windowText(window: number): string {
  return `${window / SECOND}s`;
}
