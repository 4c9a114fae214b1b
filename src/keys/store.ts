import type { ApiKey, KeyKind, KeySecret, RevocationReason, SecretDigest, StoredKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { Filter } from "./filter/filter.ts";

/** A key to be stored, with the digest of its first secret. */
export interface NewKey {
  readonly key: ApiKey;
  readonly digest: SecretDigest;
  /** Digests of the same raw key under the other server keys of the ring: a key that has one of them is the same key. */
  readonly otherDigests: readonly SecretDigest[];
  readonly request: RequestIdentity | null;
  /** Who creates it. */
  readonly principal: Principal;
}

/** Identity of a request for AIP-155, with a keyed hash of what was asked. */
export interface RequestIdentity {
  readonly requestId: string;
  readonly fingerprint: Uint8Array;
}

/** What became of one key to be stored. */
export type Insertion =
  | { readonly outcome: "inserted"; readonly key: ApiKey }
  | { readonly outcome: "repeated"; readonly key: ApiKey; readonly fingerprint: Uint8Array }
  | { readonly outcome: "raw_key_exists" };

/** Which key an operation means; `kind` null for either. */
export interface KeyName {
  readonly keyId: string;
  readonly kind: KeyKind | null;
}

export interface KeyChanges {
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface Rotation {
  readonly digest: SecretDigest;
  readonly hint: string;
  /** Until when the secret before this one works too; null: it stops, and every older one with it. */
  readonly graceEnd: Date | null;
  /** How many older secrets may be in their grace at once. */
  readonly maxGraceSecrets: number;
}

export interface Revocation {
  readonly reason: RevocationReason;
  readonly description: string | null;
}

export interface ListQuery {
  readonly kind: KeyKind;
  readonly filter: Filter;
  /** Answer keys before this one only (newest first); null from the start. */
  readonly before: string | null;
  readonly limit: number;
}

/**
 * Where keys are kept. Every change is one atomic step that is durable when the promise resolves. A change answers the key as
 * it is afterwards, or null when its condition did not hold: the key exists (of that kind), is not revoked, for update and
 * rotation not expired, and the principal may handle the reserved scopes that it has at that time.
 */
export interface KeyStore {
  /** One result a key, in order; a raw key that stands twice is inserted by the first. */
  insert(keys: readonly NewKey[]): Promise<Insertion[]>;
  get(name: KeyName): Promise<StoredKey | null>;
  list(query: ListQuery, now: Date): Promise<ApiKey[]>;
  update(name: KeyName, changes: KeyChanges, principal: Principal, now: Date): Promise<ApiKey | null>;
  rotate(name: KeyName, rotation: Rotation, principal: Principal, now: Date): Promise<ApiKey | null>;
  revoke(name: KeyName, revocation: Revocation, principal: Principal, now: Date): Promise<ApiKey | null>;
  delete(name: KeyName, principal: Principal): Promise<boolean>;
}

/** Secrets of a stored key that are good at this time: the current one, and those in their grace. */
export function liveSecrets(stored: StoredKey, now: number): KeySecret[] {
  return stored.secrets.filter((secret) => secret.expireTime === null || secret.expireTime.getTime() > now);
}
