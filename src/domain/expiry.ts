import { parseDuration, TTL_BOUNDS } from "./duration.ts";
import { invalidArgument } from "./errors.ts";

/** A time as in `google.protobuf.Timestamp`. */
export interface TimestampValue {
  readonly seconds: bigint;
  readonly nanos: number;
}

/** The expiry that a request asks for: a duration, a time, or neither. */
export interface ExpiryInput {
  readonly ttl?: string | undefined;
  readonly expireTime?: TimestampValue | undefined;
}

/** When a key expires: so many milliseconds from now, or at a time (Unix time in milliseconds); null: never. */
export type Expiry = { readonly after: number } | { readonly at: number } | null;

/** Limits on the lifetimes of keys, in milliseconds. */
export interface Lifetimes {
  /** Counts from the creation of a key; null: no limit. */
  readonly maxKeyTtl: number | null;
  /** The lifetime of a key whose request asks for none; null: the maximum. */
  readonly defaultKeyTtl: number | null;
}

export const UNLIMITED: Lifetimes = { maxKeyTtl: null, defaultKeyTtl: null };

/** Returns the expiry that a request asks for; null for none. Throws `INVALID_ARGUMENT`; `path` is put before the names of the fields. */
export function parseExpiry({ ttl, expireTime }: ExpiryInput, path = ""): Expiry {
  if (expireTime === undefined) return ttl === undefined ? null : { after: parseDuration(ttl, `${path}ttl`) };
  if (ttl !== undefined)
    throw invalidArgument(`${path}expire_time`, "must not be set together with ttl", "VALUE_NOT_ALLOWED");
  return { at: toMilliseconds(expireTime, `${path}expire_time`) };
}

/** The first and the last second of `google.protobuf.Timestamp`: the years 1 to 9999. */
const [MIN_SECONDS, MAX_SECONDS] = [-62_135_596_800n, 253_402_300_799n];

/** Returns the Unix time. Times are stored in milliseconds. Finer digits are truncated, so that no key lives longer than was asked. */
export function toMilliseconds({ seconds, nanos }: TimestampValue, field: string): number {
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS || nanos < 0 || nanos > 999_999_999)
    throw invalidArgument(field, "must be a time between the years 1 and 9999", "OUT_OF_RANGE");
  return Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
}

/**
 * Returns the expiry of a new key: as asked, otherwise the default. Throws `INVALID_ARGUMENT` if it has passed at `now`, or is later than the
 * limits allow.
 */
export function newExpiry(input: ExpiryInput, { maxKeyTtl, defaultKeyTtl }: Lifetimes, now: number): Expiry {
  const asked = parseExpiry(input);
  if (asked === null) {
    const after = defaultKeyTtl ?? maxKeyTtl;
    return after === null ? null : { after };
  }
  const field = "at" in asked ? "expire_time" : "ttl";
  const life = "at" in asked ? asked.at - now : asked.after;
  requireFuture(life, field);
  requireBounded(life, field);
  if (maxKeyTtl !== null && life > maxKeyTtl) throw tooLong(field);
  return asked;
}

/** Throws `INVALID_ARGUMENT` unless a life of so many milliseconds is positive. */
export function requireFuture(life: number, field: string): void {
  if (life <= 0) throw invalidArgument(field, "must be in the future", "OUT_OF_RANGE");
}

/** Throws `INVALID_ARGUMENT` if a life of so many milliseconds is longer than that of any key. */
export function requireBounded(life: number, field: string): void {
  if (life > TTL_BOUNDS.max) throw invalidArgument(field, "must be at most 10 years in the future", "OUT_OF_RANGE");
}

/** Returns the error of a key that would live longer than the maximum. */
export function tooLong(field: string) {
  return invalidArgument(
    field,
    "is later than allowed by the maximum key lifetime (KEYHOLD_MAX_KEY_TTL)",
    "OUT_OF_RANGE",
  );
}

export function timeOf(expiry: Expiry, now: number): Date | null {
  if (expiry === null) return null;
  return new Date("at" in expiry ? expiry.at : now + expiry.after);
}

/** Returns the earlier of two times; null is never. */
export function earlier(a: Date | null, b: Date | null): Date | null {
  if (a === null || b === null) return a ?? b;
  return a < b ? a : b;
}
