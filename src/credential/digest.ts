import { invalidArgument } from "../domain/errors.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";
import { equalBytes } from "../lib/bytes.ts";

/**
 * What is stored of a credential: HMAC-SHA-256 of its text in UTF-8 under a server key that is not in the database, so that
 * a stolen table does not even allow guessing at weak imported keys.
 */
export interface CredentialDigest {
  /** The `ServerKey.id` of the key of the ring "secret-digest" that made it, no API key's id. */
  readonly keyId: string;
  /** 32 bytes. */
  readonly digest: Uint8Array;
}

/** The digest to store. Throws `INVALID_ARGUMENT` on `raw_key` for a lone surrogate, which UTF-8 cannot tell from U+FFFD. */
export function digestCurrent(text: string, digestKeys: KeyRing): CredentialDigest {
  if (!text.isWellFormed()) throw invalidArgument("raw_key", "must be well-formed Unicode");
  return digestUnder(digestKeys.current, text);
}

/** The digests of well-formed Unicode by the keys of the ring that are not current: retired ones, and those that are to be current later. */
export function digestOthers(text: string, digestKeys: KeyRing): readonly CredentialDigest[] {
  return digestKeys.retired.map((key) => digestUnder(key, text));
}

/** Every digest under which a credential may be stored, the current key's first; none if its text cannot have been stored. */
export function digestAll(text: string, digestKeys: KeyRing): readonly CredentialDigest[] {
  return text.isWellFormed() ? digestKeys.all.map((key) => digestUnder(key, text)) : [];
}

/** Whether a credential is the one that was stored, in constant time. False if the key of the stored digest is gone from the ring. */
export function digestEquals(text: string, stored: CredentialDigest, digestKeys: KeyRing): boolean {
  const key = digestKeys.find(stored.keyId);
  return key !== undefined && text.isWellFormed() && equalBytes(digestUnder(key, text).digest, stored.digest);
}

function digestUnder(key: ServerKey, text: string): CredentialDigest {
  return { keyId: key.id, digest: hmacSha256(key, text) };
}
