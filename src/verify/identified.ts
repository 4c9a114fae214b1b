import { isSameDigest, type KeyKind, type KeySecret, type SecretDigest } from "../domain/key.ts";
import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { CredentialType, Valid } from "../domain/verdict.ts";
import type { TokenContent } from "../token/token.ts";

/** A credential with a valid format and signature. Whether its key is active is for `evaluate` to decide. */
export interface Identified {
  readonly credentialType: CredentialType;
  readonly lookup: KeyLookup;
  /** The required kind of the key; null for either. */
  readonly kind: KeyKind | null;
  /** For a credential that is itself a secret: every digest under which it may be stored. */
  readonly digests: readonly SecretDigest[];
  readonly token: VerifiedToken | null;
  /** The digest of a hash of the raw key, if the key is stored under it: the last of `digests`. */
  readonly hashDigest?: SecretDigest;
  /** The last valid evaluation. */
  last?: Evaluated;
  /** Where to cache the credential once its key is found; undefined if it is cached, or must not be. */
  cacheAs?: CachePlace | undefined;
}

export interface CachePlace {
  readonly name: string;
  readonly generation: number;
}

/** A credential and its key; null: there is none. */
export interface Loaded {
  readonly identified: Identified;
  readonly stored: VerifiableRecord | null;
}

/** A valid evaluation: while the cache returns the same object as `stored`, the verdict is the same, except for the time. */
export interface Evaluated extends Loaded {
  readonly secret: KeySecret;
  readonly verdict: Valid;
  /** Whether the verdict was returned before, and is memoizable. */
  readonly isRepeated: boolean;
}

/** The content of a derived token that verification uses. */
export type VerifiedToken = Pick<
  TokenContent,
  "tokenId" | "secretVersion" | "scopes" | "claims" | "audience" | "expireTime"
>;

/** Caches identified credentials, so that none is identified twice. */
export interface IdentityCache {
  /** Incremented when everything is evicted: an identification begun before must not be cached. */
  readonly generation: number;
  /** Returns the cache key of a credential: a hash, computed once per call. */
  nameOf(credential: string): string;
  /** Returns undefined also for an expired token. */
  get(name: string): Identified | undefined;
  set(name: string, identified: Identified, generation: number): void;
}

export function identifiedSecret(keyId: string, digests: readonly SecretDigest[]): Identified {
  return { credentialType: "ISSUED_API_KEY", lookup: { keyId, digests: [] }, kind: "issued", digests, token: null };
}

export function identifiedRawKey(digests: readonly SecretDigest[]): Identified {
  const lookup = { keyId: null, digests: digests.map(({ digest }) => digest) };
  return { credentialType: "IMPORTED_API_KEY", lookup, kind: "imported", digests, token: null };
}

/** Returns a raw key that is stored under the digest of a hash until it is adopted, and then under one of its own digests. */
export function identifiedByHash(native: readonly SecretDigest[], hashDigest: SecretDigest): Identified {
  return { ...identifiedRawKey(native), digests: [...native, hashDigest], hashDigest };
}

/** Returns the digests of the credential itself. */
export function nativeDigests({ digests, hashDigest }: Identified): readonly SecretDigest[] {
  return hashDigest === undefined ? digests : digests.slice(0, -1);
}

export function identifiedToken(credentialType: "JWT" | "MACAROON", keyId: string, token: VerifiedToken): Identified {
  return { credentialType, lookup: { keyId, digests: [] }, kind: null, digests: [], token };
}

/** Returns whether the credential is this secret, in constant time, or was derived from it. */
export function belongsTo({ token, digests }: Identified, secret: KeySecret): boolean {
  if (token !== null) return token.secretVersion === secret.version;
  return digests.some((digest) => isSameDigest(digest, secret.digest));
}
