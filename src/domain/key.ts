/** What a key is, whatever stores it or speaks of it. */

export type KeyKind = "issued" | "imported";

/** Why a key was revoked (RFC 5280 §5.3.1), by the name that the API gives it. */
export type RevocationReason =
  | "REVOCATION_REASON_UNSPECIFIED"
  | "REVOCATION_REASON_KEY_COMPROMISE"
  | "REVOCATION_REASON_AFFILIATION_CHANGED"
  | "REVOCATION_REASON_SUPERSEDED"
  | "REVOCATION_REASON_PRIVILEGE_WITHDRAWN";

/** What verification needs of a key, and what it tells of one. Absent values are null. */
export interface VerifiableKey {
  /** UUID version 7 in its canonical lower-case text. */
  readonly keyId: string;
  readonly kind: KeyKind;
  readonly actorId: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly expireTime: Date | null;
  readonly revokeTime: Date | null;
}

/** A key as everyone may see it: no secret, no hash. */
export interface ApiKey extends VerifiableKey {
  readonly name: string;
  /** What lets a person recognise the key; may be empty. */
  readonly hint: string;
  readonly createTime: Date;
  readonly updateTime: Date;
  readonly lastUsedTime: Date | null;
  readonly rotateTime: Date | null;
  readonly revocationReason: RevocationReason | null;
  readonly revocationDescription: string | null;
}

/** A keyed hash of a secret: HMAC-SHA-256 under the server key with this id. */
export interface SecretDigest {
  readonly keyId: string;
  readonly digest: Uint8Array;
}

/** One secret of a key. An older version is good until its grace has run out. */
export interface KeySecret {
  /** 1 for the first secret of a key, one more at each rotation. */
  readonly version: number;
  readonly digest: SecretDigest;
  /** When its grace ends; null for the current secret. */
  readonly expireTime: Date | null;
}

/** A key with what is needed to judge a credential. `secrets` has the current one first. */
export interface StoredKey<K extends VerifiableKey = ApiKey> {
  readonly key: K;
  readonly secrets: readonly KeySecret[];
}

export type KeyStatus = "ACTIVE" | "REVOKED" | "EXPIRED";

/** The status at a time (contract §3): revoked wins over expired; expired from `expireTime` on. */
export function statusAt(key: Pick<VerifiableKey, "revokeTime" | "expireTime">, now: number): KeyStatus {
  if (key.revokeTime !== null) return "REVOKED";
  if (key.expireTime !== null && key.expireTime.getTime() <= now) return "EXPIRED";
  return "ACTIVE";
}
