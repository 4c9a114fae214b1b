import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";

/**
 * The stored form of a credential: HMAC-SHA-256 of its UTF-8 text under a server key that is not in the database. A stolen table alone does
 * not allow guessing weak imported keys.
 */
export interface CredentialDigest {
  /** `ServerKey.id` in the ring "secret-digest"; not the id of an API key. */
  readonly keyId: string;
  /** 32 bytes. */
  readonly digest: Uint8Array;
}

/** Returns the digest under the current key. Throws `INVALID_ARGUMENT` on `raw_key` for a lone surrogate, which UTF-8 cannot represent. */
export function digestCurrent(text: string, digestKeys: KeyRing): CredentialDigest {
  if (!text.isWellFormed()) throw invalidArgument("raw_key", "must be well-formed Unicode", "INVALID_CHARACTER");
  return digestUnder(digestKeys.current, text);
}

/** Returns the digests under the ring's other keys: retired ones and those not yet promoted. `text` must be well-formed Unicode. */
export function digestOthers(text: string, digestKeys: KeyRing): readonly CredentialDigest[] {
  return digestKeys.retired.map((key) => digestUnder(key, text));
}

/** Returns every digest under which a credential may be stored, the current key's first; none for malformed Unicode, which is never stored. */
export function digestAll(text: string, digestKeys: KeyRing): readonly CredentialDigest[] {
  return text.isWellFormed() ? digestKeys.all.map((key) => digestUnder(key, text)) : [];
}

/** Returns whether a credential matches a stored digest, in constant time. False if the key of the digest is no longer in the ring. */
export function digestEquals(text: string, stored: CredentialDigest, digestKeys: KeyRing): boolean {
  const key = digestKeys.find(stored.keyId);
  return key !== undefined && text.isWellFormed() && equalBytes(digestUnder(key, text).digest, stored.digest);
}

function digestUnder(key: ServerKey, text: string): CredentialDigest {
  return { keyId: key.id, digest: hmacSha256(key, text) };
}
