import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  OutagePolicy,
  RateLimitEnforcement,
  type RateLimitSchema,
  type RateLimit as WireRateLimit,
} from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import type { LimitStatusSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { LimitStatus, RateLimit, RateLimitInput } from "../../domain/rate-limit.ts";

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

/** Returns the limits of a key as messages. */
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
  return statuses.map(({ limit: { name, quota, window, burst }, remaining, resetTime, retryAfter, isExceeded }) => ({
    ...{ name, quota, burst, window: windowText(window), exceeded: isExceeded },
    remaining: remaining ?? undefined,
    resetTime: resetTime === null ? undefined : timestampFromMs(Math.ceil(resetTime / SECOND) * SECOND),
    retryDelay: retryAfter === null ? undefined : durationFromMs(Math.ceil(retryAfter)),
  }));
}

function windowText(window: number): string {
  return `${window / SECOND}s`;
}
