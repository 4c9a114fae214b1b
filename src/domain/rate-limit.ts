import { parseDuration } from "./duration.ts";
import { checkAll, type FieldViolation, invalidArgument, invalidArguments } from "./errors.ts";
import { type TimestampValue, toMilliseconds } from "./expiry.ts";

export const ENFORCEMENTS = ["ENFORCED", "SHADOW"] as const;
export const OUTAGE_POLICIES = ["DENY", "ALLOW"] as const;

/** A limit on the verifications of a key, or of all keys of an actor: a bucket of `burst` tokens, which refills with `quota` tokens per window. */
export interface RateLimit {
  /** Unique among the limits of a key, and among those of an actor. */
  readonly name: string;
  readonly quota: number;
  /** Milliseconds. */
  readonly window: number;
  readonly burst: number;
  /** `SHADOW`: counts, and never denies. */
  readonly enforcement: (typeof ENFORCEMENTS)[number];
  /** Whether only verifications that name the limit are charged. */
  readonly onDemand: boolean;
  /** What happens while the database is unreachable and this node has no tokens left. */
  readonly onOutage: (typeof OUTAGE_POLICIES)[number];
}

export const PERIODS = ["DAY", "WEEK", "MONTH", "YEAR"] as const;

/** A limit on the verifications of a key in each period of the calendar. */
export interface Quota {
  /** Unique among the limits of a key. */
  readonly name: string;
  readonly limit: number;
  readonly period: (typeof PERIODS)[number];
  /** The begin of a period, in milliseconds since the epoch. */
  readonly anchorTime: number;
  /** When what is used of it was last adjusted, in milliseconds since the epoch; null: never. */
  readonly adjustTime: number | null;
}

export type Limit = RateLimit | Quota;

export function isQuota(limit: Limit): limit is Quota {
  return "period" in limit;
}

/** Returns whether a limit counts, and never denies. */
export function isShadow(limit: Limit): boolean {
  return isRateLimit(limit) && limit.enforcement === "SHADOW";
}

/** Returns whether a limit admits verifications that it cannot charge, because the database is unreachable. */
export function allowsOutage(limit: Limit): boolean {
  return isRateLimit(limit) && limit.onOutage === "ALLOW";
}

export function isRateLimit(limit: Limit): limit is RateLimit {
  return !isQuota(limit);
}

/** Returns the rate limits and the quotas of a key; null: it has none. */
export function limitsOf(key: {
  readonly rateLimits: readonly RateLimit[] | null;
  readonly quotas: readonly Quota[] | null;
}) {
  const { rateLimits, quotas } = key;
  return rateLimits === null ? quotas : quotas === null ? rateLimits : [...rateLimits, ...quotas];
}

/** The limits that all keys of an actor share, at least one. */
export interface ActorLimits {
  readonly actorId: string;
  readonly limits: readonly Limit[];
}

/** Returns the limits that a verification is charged by, those of its key and of the actor; null: there are none. */
export function chargedLimits(credential: {
  readonly keyLimits: readonly Limit[] | null;
  readonly actorLimits?: ActorLimits | undefined;
}) {
  const { keyLimits, actorLimits } = credential;
  return actorLimits === undefined ? keyLimits : [...(keyLimits ?? []), ...actorLimits.limits];
}

/** What a verification costs by the limits of this name, of the key and of its actor; 0: they are read only. */
export interface Charge {
  readonly name: string;
  readonly cost: number;
}

/** The state of a limit after a verification. */
export interface LimitStatus {
  readonly limit: Limit;
  /** What the verification costs by it, whether it is admitted or not. */
  readonly cost: number;
  /** Tokens left, by what this node knows; null: unknown, because the cost will be charged later. */
  readonly remaining: number | null;
  /** When nothing will be used of it, in milliseconds since the epoch; null: unknown. */
  readonly resetTime: number | null;
  /** Milliseconds until the cost, or the next one, could be admitted; null: it can be now, or is larger than the bucket and never will be. */
  readonly retryAfter: number | null;
  /** Whether the limit denies the verification, or would, were it enforced. */
  readonly isExceeded: boolean;
}

/** The result of charging a verification. */
export interface Charged {
  /** In the order of the limits, without those on demand that are not charged. */
  readonly statuses: readonly LimitStatus[];
  /** The limit that denies the verification; null: it is admitted, and charged. */
  readonly denied: LimitStatus | null;
}

/** A limit as a request has it. */
export interface RateLimitInput {
  readonly name: string;
  readonly quota: number;
  /** A duration. */
  readonly window: string;
  readonly burst?: number | undefined;
  readonly enforcement: RateLimit["enforcement"];
  readonly onDemand: boolean;
  readonly onOutage: RateLimit["onOutage"];
}

/** The longest window, and the longest time in which a bucket refills. */
const MAX_REFILL = 31 * 86_400_000;

const WINDOW_BOUNDS = { min: 1_000, max: MAX_REFILL };

/** The source of a pattern of the name of a limit. */
export const LIMIT_NAME = "[a-z][a-z0-9_.-]{0,62}";

const NAME = new RegExp(`^${LIMIT_NAME}$`);
const MAX_TOKENS = 1_000_000_000;

/**
 * Returns the limits of a key; null: it has none. Throws `INVALID_ARGUMENT` with every invalid field.
 *
 * @example checkRateLimits([{ name: "requests", quota: 60, window: "1m", … }], "rate_limits")
 */
export function checkRateLimits(inputs: readonly RateLimitInput[], field: string): readonly RateLimit[] | null {
  return uniqueByName(
    checkAll(...inputs.map((input, index) => () => checkRateLimit(input, `${field}[${index}]`))),
    field,
  );
}

/** Returns limits; null for none. Throws `INVALID_ARGUMENT` if two have one name. */
function uniqueByName<L extends Limit>(limits: readonly L[], field: string): readonly L[] | null {
  const repeated: FieldViolation[] = limits.flatMap(({ name }, index) => {
    if (limits.findIndex((other) => other.name === name) === index) return [];
    return [{ field: `${field}[${index}].name`, description: "is used twice", reason: "DUPLICATE_FIELD" }];
  });
  if (repeated.length > 0) throw invalidArguments(repeated);
  return limits.length === 0 ? null : limits;
}

/** A quota as a request has it. */
export interface QuotaInput extends Pick<Quota, "name" | "limit" | "period"> {
  readonly anchorTime?: TimestampValue | undefined;
}

/** 1 January 2001 was a Monday. */
const CALENDAR_ANCHOR = Date.UTC(2001, 0, 1);

/** Returns the quotas of a key; null: it has none. Throws `INVALID_ARGUMENT` with every invalid field. */
export function checkQuotas(inputs: readonly QuotaInput[], field: string): readonly Quota[] | null {
  return uniqueByName(checkAll(...inputs.map((input, index) => () => checkQuota(input, `${field}[${index}]`))), field);
}

function checkQuota({ name, limit, period, anchorTime }: QuotaInput, field: string): Quota {
  const [, , anchor] = checkAll(
    () => requireLimitName(name, `${field}.name`),
    () => requireTokens(limit, `${field}.limit`),
    () => (anchorTime === undefined ? CALENDAR_ANCHOR : toMilliseconds(anchorTime, `${field}.anchor_time`)),
  );
  return { name, limit, period, anchorTime: anchor, adjustTime: null };
}

/** Throws `INVALID_ARGUMENT` unless a limit may have this name. */
export function requireLimitName(name: string, field: string): void {
  const rule = "must be 1 to 63 characters of a-z, 0-9, _, . and -, the first one a letter";
  if (!NAME.test(name)) throw invalidArgument(field, rule, "INVALID_CHARACTER");
}

function checkRateLimit({ window: text, ...limit }: RateLimitInput, field: string): RateLimit {
  const { name, quota, burst = quota } = limit;
  const [, , , window] = checkAll(
    () => requireLimitName(name, `${field}.name`),
    () => requireTokens(quota, `${field}.quota`),
    () => limit.burst !== undefined && requireTokens(burst, `${field}.burst`),
    () => parseDuration(text, `${field}.window`, WINDOW_BOUNDS),
  );
  if ((burst / quota) * window > MAX_REFILL)
    throw invalidArgument(`${field}.burst`, "must refill within 31d", "OUT_OF_RANGE");
  return { ...limit, burst, window };
}

function requireTokens(count: number, field: string): void {
  if (!(count >= 1 && count <= MAX_TOKENS))
    throw invalidArgument(field, `must be from 1 to ${MAX_TOKENS}`, "OUT_OF_RANGE");
}
