import type { KeyKind, KeySecret, SecretDigest } from "../domain/key.ts";
import type { CredentialType, Valid } from "../domain/verdict.ts";
import { equalBytes } from "../lib/bytes.ts";
import type { JsonObject } from "../lib/json.ts";
import type { KeyLookup, VerifiableRecord } from "./reader.ts";

/** A credential that is ours by its form and signature. Whether its key still lives is for `judge` to say. */
export interface Identified {
  readonly credentialType: CredentialType;
  readonly lookup: KeyLookup;
  /** The kind that the key must be of; null for either. */
  readonly kind: KeyKind | null;
  /** Of a credential that is itself a secret: every digest that it may be stored under. */
  readonly digests: readonly SecretDigest[];
  readonly token: TokenFacts | null;
  /** The last time that it was found valid. */
  last?: Evaluated;
}

/** That a credential was valid, and by what: while these are the same objects, so is the verdict, but for the time. */
export interface Evaluated {
  readonly stored: VerifiableRecord;
  readonly secret: KeySecret;
  readonly verdict: Valid;
  /** Whether the verdict was returned before, and is `Shared`. */
  readonly isRepeated: boolean;
}

/** Of a derived token alone. */
export interface TokenFacts {
  readonly tokenId: string;
  /** Version of the key's secret that it was derived from. */
  readonly secretVersion: number;
  readonly scopes: readonly string[];
  readonly claims: JsonObject;
  readonly expireTime: Date;
}

/** What proven credentials are, so that none need be proven twice. */
export interface IdentityCache {
  /** Goes up when everything is forgotten: what was begun to be proven before must not be remembered. */
  readonly generation: number;
  /** The name that a credential is remembered by: a hash, made once a call. */
  nameOf(credential: string): string;
  /** Undefined too for a token whose time is over. */
  recall(name: string): Identified | undefined;
  remember(name: string, recognized: Identified, generation: number): void;
}

export function identifiedSecret(keyId: string, digests: readonly SecretDigest[]): Identified {
  return { credentialType: "ISSUED_API_KEY", lookup: { keyId, digests: [] }, kind: "issued", digests, token: null };
}

export function identifiedRawKey(digests: readonly SecretDigest[]): Identified {
  const lookup = { keyId: null, digests: digests.map(({ digest }) => digest) };
  return { credentialType: "IMPORTED_API_KEY", lookup, kind: "imported", digests, token: null };
}

export function identifiedToken(credentialType: "JWT" | "MACAROON", keyId: string, token: TokenFacts): Identified {
  return { credentialType, lookup: { keyId, digests: [] }, kind: null, digests: [], token };
}

/** Whether this secret of its key is the one that the credential is, in constant time, or was derived from. */
export function belongsTo({ token, digests }: Identified, secret: KeySecret): boolean {
  if (token !== null) return token.secretVersion === secret.version;
  return digests.some(({ keyId, digest }) => keyId === secret.digest.keyId && equalBytes(digest, secret.digest.digest));
}
