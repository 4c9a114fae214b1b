import { isQuota, isShadow, type LimitStatus } from "../domain/rate-limit.ts";
import { systemClock } from "../lib/clock.ts";
import { type LimitField, rateLimitFields, retryAfterSeconds } from "../lib/rate-limit-fields.ts";

/** Returns the header fields of HTTP about the states of limits at `now` (milliseconds), by name in lower case. */
export function limitFields(limits: readonly LimitStatus[], now = systemClock.now()): Record<string, string> {
  return rateLimitFields(limits.map((status) => fieldOf(status, now)));
}

function fieldOf({ limit, remaining, resetTime }: LimitStatus, now: number): LimitField {
  return {
    name: limit.name,
    quota: isQuota(limit) ? limit.limit : limit.quota,
    window: isQuota(limit) ? undefined : limit.window / 1000,
    remaining: remaining ?? undefined,
    reset: resetTime === null ? undefined : Math.max(0, (resetTime - now) / 1000),
  };
}

/** Returns the seconds after which a denied verification may be admitted; 1 if that is unknown. */
export function retryAfterOf(limits: readonly LimitStatus[]): number {
  return retryAfterSeconds(limits.filter(denies).map(({ retryAfter }) => retryAfter ?? 0));
}

/** Returns whether a limit denies the verification. One that is not enforced can be exceeded, and does not. */
export function denies({ limit, isExceeded }: LimitStatus): boolean {
  return isExceeded && !isShadow(limit);
}
