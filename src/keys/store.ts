import type { ApiKey, KeyKind, RevocationReason, SecretDigest, StoredKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { RawKeyHash } from "../domain/raw-key-hash.ts";
import type { Filter } from "./filter/filter.ts";

/** A key to insert, with the digest of its first secret. */
export interface NewKey {
  readonly key: ApiKey;
  readonly digest: SecretDigest;
  /** Present if only a hash of the raw key is known. */
  readonly hash?: NewHash;
  /** Digests under the other server keys of the ring, and those of hashes of the raw key: a key with one of them is the same key. */
  readonly otherDigests: readonly SecretDigest[];
  readonly request: RequestIdentity | null;
  /** Who creates it. */
  readonly principal: Principal;
}

/** The hash of a key to insert. */
export interface NewHash extends RawKeyHash {
  /** When the key expires once it is adopted, if that is not `ApiKey.expireTime`; null: never. */
  readonly adoptedExpireTime: Date | null;
  /** With a slow hash: the prefix of the raw key by which it is looked up. */
  readonly lookup: LookupPrefix | null;
}

export interface LookupPrefix {
  /** Bytes. */
  readonly length: number;
  /** Under every server key of the ring. No other key that is not adopted has one of them. */
  readonly digests: readonly SecretDigest[];
}

/** The identity of a request (AIP-155), with a keyed hash of its content. */
export interface RequestIdentity {
  readonly requestId: string;
  readonly fingerprint: Uint8Array;
}

/** The result of inserting one key. */
export type Insertion =
  | { readonly outcome: "inserted"; readonly key: ApiKey }
  | { readonly outcome: "repeated"; readonly key: ApiKey; readonly fingerprint: Uint8Array }
  | { readonly outcome: "raw_key_exists" }
  /** Another key that is not adopted has the same prefix. */
  | { readonly outcome: "lookup_prefix_exists" }
  /** The scheme or prefix length of the hash was removed, because no key had it. */
  | { readonly outcome: "hash_scheme_gone" };

/** Identifies the key of an operation; `kind` is null for either. */
export interface KeyName {
  readonly keyId: string;
  readonly kind: KeyKind | null;
}

/** The new values of an update. Applied only if its immutable fields equal those of the key. */
export interface KeyUpdate {
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly expiry?: NewExpiry;
  /** Canonical CIDR blocks; null: any address. */
  readonly allowedCidrs?: readonly string[] | null;
  /** Immutable. */
  readonly actorId?: string;
  /** Immutable. */
  readonly restrictedToActorIds?: readonly string[];
}

/**
 * When a key shall expire. Applied only if it is the expiry that the key has, or a later time than `KeyStore.latestTime` that the maximum
 * lifetime allows: a key may always be shortened.
 */
export interface NewExpiry {
  /** Null: never. */
  readonly time: Date | null;
  /** Maximum lifetime from the creation of the key, in milliseconds; null: none. */
  readonly maxKeyTtl: number | null;
}

export interface Rotation {
  /** Identifies the new secret among those of its key. */
  readonly version: number;
  readonly digest: SecretDigest;
  readonly hint: string;
  /** When the previous secret becomes invalid; null for immediately, like all older ones. */
  readonly graceEnd: Date | null;
  /** Maximum number of older secrets in their grace period. */
  readonly maxGraceSecrets: number;
}

export interface Revocation {
  readonly reason: RevocationReason;
  readonly description: string | null;
}

export interface ListQuery {
  /** Null for both kinds. */
  readonly kind: KeyKind | null;
  /** Return the keys of these actors only; null: of any. */
  readonly actorIds: readonly string[] | null;
  readonly filter: Filter;
  /** Return keys before this one only (newest first); null for the first page. */
  readonly before: string | null;
  readonly limit: number;
}

/**
 * Stores keys. Each change is atomic, and durable when the promise resolves. It returns the changed key, or null if its condition did not
 * hold: the key exists (with that kind), is not revoked, for all but revoke has not expired, and the principal may know of it and change it
 * (`isVisible`, `requireHandled`).
 */
export interface KeyStore {
  /** Returns one result per key, in order. Of keys with the same raw key the first is inserted. */
  insert(keys: readonly NewKey[]): Promise<Insertion[]>;
  get(name: KeyName): Promise<StoredKey | null>;
  /**
   * Returns the latest time by the clocks of this node (`now`), the database and all nodes. Update, rotate and enable judge by it whether a
   * key has expired.
   */
  latestTime(now: Date): Promise<Date>;
  /** Returns the earliest time by the same clocks. Disable judges by it: a key that some node still accepts can be disabled. */
  earliestTime(now: Date): Promise<Date>;
  list(query: ListQuery, now: Date): Promise<ApiKey[]>;
  update(name: KeyName, update: KeyUpdate, principal: Principal, now: Date): Promise<ApiKey | null>;
  rotate(name: KeyName, rotation: Rotation, principal: Principal, now: Date): Promise<ApiKey | null>;
  revoke(name: KeyName, revocation: Revocation, principal: Principal, now: Date): Promise<ApiKey | null>;
  /** Returns a key that is disabled already unchanged, once that is propagated; so does `enable` with one that is not disabled. */
  disable(name: KeyName, reason: string | null, principal: Principal, now: Date): Promise<ApiKey | null>;
  enable(name: KeyName, principal: Principal, now: Date): Promise<ApiKey | null>;
  delete(name: KeyName, principal: Principal): Promise<boolean>;
}
