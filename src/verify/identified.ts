import { isSameDigest, type KeyKind, type KeySecret, type SecretDigest } from "../domain/key.ts";
import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { CredentialType } from "../domain/verdict.ts";
import { type Adoption, adoptionOf } from "../hashing/adopter.ts";
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
}

/** What of an identified credential its evaluation needs. */
export type Credential = Pick<Identified, "credentialType" | "token">;

/** A secret of a key without its digest. */
export type SecretVersion = Pick<KeySecret, "version" | "expireTime">;

/** Returns the version of a secret in its grace period; null for another one. */
export function oldVersionOf(secret: SecretVersion | undefined): number | null {
  return secret?.expireTime ? secret.version : null;
}

/** A credential and its key. */
export interface Loaded {
  readonly identified: Credential;
  readonly stored: VerifiableRecord;
  /** The secret that the credential is, or was derived from; undefined if the key does not have it any more. */
  readonly secret: SecretVersion | undefined;
  /** Set if only a hash of the raw key is stored. */
  readonly adoption: Adoption | null;
}

/** The content of a derived token that verification uses. */
export type VerifiedToken = Pick<
  TokenContent,
  "tokenId" | "secretVersion" | "scopes" | "claims" | "audience" | "expireTime"
>;

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
  return { credentialType, lookup: { keyId, digests: [], isParent: true }, kind: null, digests: [], token };
}

/** Returns the credential with its key. */
export function withKey(identified: Identified, stored: VerifiableRecord): Loaded {
  const adoption = identified.hashDigest === undefined ? null : adoptionOf(nativeDigests(identified), stored);
  return { identified, stored, secret: stored.secrets.find((secret) => belongsTo(identified, secret)), adoption };
}

/** Returns whether the credential is this secret, in constant time, or was derived from it. */
export function belongsTo({ token, digests }: Identified, secret: KeySecret): boolean {
  if (token !== null) return token.secretVersion === secret.version;
  return digests.some((digest) => isSameDigest(digest, secret.digest));
}
