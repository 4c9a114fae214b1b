import { v7 as uuidv7 } from "uuid";
import { equalBytes } from "../lib/bytes.ts";
import type { Random } from "../lib/random.ts";
import { invalidArgument } from "./errors.ts";
import type { Quota, RateLimit } from "./rate-limit.ts";
import type { HashAlgorithm, RawKeyHash } from "./raw-key-hash.ts";

export const KEY_KINDS = ["issued", "imported"] as const;

export type KeyKind = (typeof KEY_KINDS)[number];

/** Why a key was revoked (RFC 5280 §5.3.1). */
export const REVOCATION_REASONS = [
  "UNSPECIFIED",
  "KEY_COMPROMISE",
  "AFFILIATION_CHANGED",
  "SUPERSEDED",
  "PRIVILEGE_WITHDRAWN",
] as const;

export type RevocationReason = (typeof REVOCATION_REASONS)[number];

/** The fields of a key that verification reads and returns. Absent values are null. */
export interface VerifiableKey {
  /** UUID version 7 in its canonical lower-case text. */
  readonly keyId: string;
  readonly kind: KeyKind;
  readonly actorId: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly expireTime: Date | null;
  readonly revokeTime: Date | null;
  readonly disableTime: Date | null;
  /** Canonical CIDR blocks from which the key is accepted; null: from anywhere. */
  readonly allowedCidrs: readonly string[] | null;
  /** The actors to whose keys an admin token is restricted; null: it is not restricted. */
  readonly restrictedToActorIds: readonly string[] | null;
  /** The limits on its verifications, at least one; null: it has none. */
  readonly rateLimits: readonly RateLimit[] | null;
  /** The same of its quotas. */
  readonly quotas: readonly Quota[] | null;
}

/** A key without secrets or hashes: safe to return to a caller. */
export interface ApiKey extends VerifiableKey {
  readonly name: string;
  /** Helps a person recognise the key; may be empty. */
  readonly hint: string;
  readonly createTime: Date;
  readonly updateTime: Date;
  readonly lastUsedTime: Date | null;
  /** Of the client that used it last, as far as KEYHOLD_LAST_USED_ADDRESS allows; null: unknown. */
  readonly lastUsedAddress: string | null;
  /** The older secrets since the last rotation without a grace period, the newest first; some may have ended. */
  readonly previousSecrets: readonly PreviousSecret[];
  readonly rotateTime: Date | null;
  readonly revocationReason: RevocationReason | null;
  readonly revocationDescription: string | null;
  readonly disableReason: string | null;
  /** The caller that created it (`callerName`); null for a key of an earlier release. */
  readonly createdBy: string | null;
  /** The callers that revoked and disabled it; null if it is not, or an earlier release has done it. */
  readonly revokedBy: string | null;
  readonly disabledBy: string | null;
  /** How the hash was made, while only a hash of the raw key is known; otherwise null. */
  readonly hashAlgorithm: HashAlgorithm | null;
  /** While only a hash is known: until when the key must be verified to live on, if there is such a time. `expireTime` is then not later. */
  readonly adoptBeforeTime: Date | null;
  /** When a key that was imported by its hash was first verified; otherwise null. */
  readonly adoptTime: Date | null;
}

/** What a key shows of a secret that was replaced with a grace period. */
export interface PreviousSecret {
  /** Null for this and `createTime`: an earlier release has replaced it. */
  readonly hint: string | null;
  readonly createTime: Date | null;
  /** End of the grace period. */
  readonly expireTime: Date;
  /** When it, or a token derived from it, was last used since it was replaced, to the minute; null: never, or not yet recorded. */
  readonly lastUsedTime: Date | null;
}

/** A keyed hash of a secret: HMAC-SHA-256 under the server key with this id. */
export interface SecretDigest {
  readonly keyId: string;
  readonly digest: Uint8Array;
}

/** Returns whether two digests are equal, in constant time, and made under the same server key. */
export function isSameDigest(a: SecretDigest, b: SecretDigest): boolean {
  return a.keyId === b.keyId && equalBytes(a.digest, b.digest);
}

/** One secret of a key. Earlier versions are valid until their grace period ends. */
export interface KeySecret {
  /** Identifies it among all secrets that the key ever had: 1 for the first one, otherwise a random number below 2^30. */
  readonly version: number;
  readonly digest: SecretDigest;
  /** End of the grace period; null for the current secret. */
  readonly expireTime: Date | null;
  /** Present while only a hash of the raw key is known, of which `digest` is then an HMAC. */
  readonly hash?: RawKeyHash;
}

/** A key and its secrets, the current secret first. */
export interface StoredKey<K extends VerifiableKey = ApiKey> {
  readonly key: K;
  readonly secrets: readonly KeySecret[];
}

export const KEY_STATUSES = ["ACTIVE", "REVOKED", "EXPIRED", "DISABLED"] as const;

export type KeyStatus = (typeof KEY_STATUSES)[number];

/**
 * Returns the status of a key at `now` (milliseconds). Revoked takes precedence over expired, and expired over disabled; `expireTime` is
 * exclusive.
 */
export function statusAt(
  key: Pick<VerifiableKey, "revokeTime" | "expireTime" | "disableTime">,
  now: number,
): KeyStatus {
  if (key.revokeTime !== null) return "REVOKED";
  if (isExpired(key, now)) return "EXPIRED";
  return key.disableTime === null ? "ACTIVE" : "DISABLED";
}

/** Returns whether a key has expired at `now` (milliseconds), revoked or not. */
export function isExpired({ expireTime }: Pick<VerifiableKey, "expireTime">, now: number): boolean {
  return expireTime !== null && expireTime.getTime() <= now;
}

/** The text form of RFC 9562 §4, in either case. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Returns a new identifier of a key or token: UUID version 7 (RFC 9562 §5.7), which sorts by creation time. `now` is in milliseconds. */
export function newId(now: number, random: Random): string {
  return uuidv7({ msecs: now, random: random.bytes(16) });
}

/** Returns the milliseconds since the epoch in an identifier of `newId`: the time at which the key or token was created. */
export function createTimeOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** Parses a UUID of any version and returns it in lower case. Throws `INVALID_ARGUMENT` naming `field`. */
export function parseKeyId(text: string, field: string): string {
  if (!UUID.test(text)) throw invalidArgument(field, "is not a UUID such as 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10");
  return text.toLowerCase();
}
