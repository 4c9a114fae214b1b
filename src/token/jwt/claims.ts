import { invalidArguments } from "../../domain/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { isCount } from "../token.ts";

/**
 * The claims that a Keyhold token gives a meaning: `iss` to `jti` (RFC 7519 §4.1) and `scope` (RFC 8693 §4.2) among them. `nbf` is never
 * written: a token with this restriction is rejected rather than the restriction ignored.
 */
export interface OurClaims {
  readonly iss: string;
  /** The actor. */
  readonly sub: string;
  /** Always written as an array, which readers of a text must accept too (RFC 7519 §4.1.3). */
  readonly aud?: string | readonly string[] | undefined;
  readonly exp: number;
  readonly nbf?: undefined;
  readonly iat: number;
  readonly jti: string;
  /** Separated by single spaces; empty for no scopes. */
  readonly scope: string;
  readonly key_id: string;
  /** The `jti` of the token that this one was derived from. */
  readonly parent_id?: string | undefined;
  /** Version of the key's secret at derivation: the token becomes invalid with that secret. */
  readonly secret_version: number;
}

/** Validators by claim. Custom claims must not have these names. */
const CLAIMS: { readonly [K in keyof OurClaims]-?: (value: unknown) => value is OurClaims[K] } = {
  iss: isText,
  sub: isText,
  aud: isAudience,
  exp: isNumericDate,
  nbf: isAbsent,
  iat: isNumericDate,
  jti: isText,
  scope: isScopeList,
  key_id: isText,
  parent_id: isTextOrAbsent,
  secret_version: isCount,
};

const CLAIM_RULES = Object.entries(CLAIMS);

/** Claim names that custom claims must not have. */
export const RESERVED_CLAIMS: ReadonlySet<string> = new Set(Object.keys(CLAIMS));

/** The maximum of `Date` in seconds (ECMA-262 §21.4.1.1). */
const MAX_NUMERIC_DATE = 8_640_000_000_000;

/** The syntax of scopes and audiences: that of RFC 6749 §3.3, plus `"` and `\`. */
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;

/** Rejects custom claims with names that Keyhold uses. Throws `INVALID_ARGUMENT` naming `custom_claims.<claim>`. */
export function checkCustomClaims(claims: JsonObject): void {
  rejectClaims(claims, (name) => RESERVED_CLAIMS.has(name), "is a reserved claim");
}

/** Rejects custom claims by name. Throws `INVALID_ARGUMENT` naming `custom_claims.<claim>`. */
export function rejectClaims(claims: JsonObject, isRejected: (name: string) => boolean, description: string): void {
  const rejected = Object.keys(claims).filter(isRejected);
  if (rejected.length === 0) return;
  const violation = { description, reason: "VALUE_NOT_ALLOWED" } as const;
  throw invalidArguments(rejected.map((name) => ({ field: `custom_claims.${name}`, ...violation })));
}

/** Returns the name of the first missing or malformed registered claim; undefined if all are valid. */
export function faultyClaim(set: JsonObject): string | undefined {
  return CLAIM_RULES.find(([name, isGood]) => !isGood(set[name]))?.[0];
}

export function isOurs(set: JsonObject): set is JsonObject & OurClaims {
  return faultyClaim(set) === undefined;
}

export function customClaims(set: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(set).filter(([name]) => !RESERVED_CLAIMS.has(name)));
}

/** Returns seconds since the epoch (RFC 7519 §2, NumericDate), rounded down so that no token outlives its expiry. */
export function numericDate(time: number): number {
  return Math.floor(time / 1000);
}

/** Returns the audience of a token; undefined: any. */
export function audienceOf({ aud }: OurClaims): readonly string[] | undefined {
  return typeof aud === "string" ? [aud] : aud;
}

export function splitScopes(scope: string): string[] {
  return scope === "" ? [] : scope.split(" ");
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isAbsent(value: unknown): value is undefined {
  return value === undefined;
}

function isTextOrAbsent(value: unknown): value is string | undefined {
  return isAbsent(value) || isText(value);
}

function isNumericDate(value: unknown): value is number {
  return isCount(value) && value <= MAX_NUMERIC_DATE;
}

/** An empty array would be for nobody, or for anybody: it is malformed. */
function isAudience(value: unknown): value is OurClaims["aud"] {
  if (isAbsent(value)) return true;
  const names = Array.isArray(value) ? value : [value];
  return names.length > 0 && names.every((name) => typeof name === "string" && VISIBLE_ASCII.test(name));
}

function isScopeList(value: unknown): value is string {
  return typeof value === "string" && splitScopes(value).every((scope) => VISIBLE_ASCII.test(scope));
}
