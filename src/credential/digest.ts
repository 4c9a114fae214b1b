import { invalidArgument } from "../domain/errors.ts";
import type { SecretDigest } from "../domain/key.ts";
import { hmacSha256, type KeyRing, type ServerKey } from "../domain/server-keys.ts";

/*
 * The stored form of a credential is HMAC-SHA-256 of its UTF-8 text under a server key of the ring "secret-digest", which is not in the database.
 * A stolen table alone does not allow guessing weak imported keys.
 */

/** Returns the digest under the current key. Throws `INVALID_ARGUMENT` on `raw_key` for a lone surrogate, which UTF-8 cannot represent. */
export function digestCurrent(text: string, digestKeys: KeyRing): SecretDigest {
  if (!text.isWellFormed()) throw invalidArgument("raw_key", "must be well-formed Unicode", "INVALID_CHARACTER");
  return digestUnder(digestKeys.current, text);
}

/** Returns every digest under which a credential may be stored, the current key's first; none for malformed Unicode, which is never stored. */
export function digestAll(text: string, digestKeys: KeyRing): readonly SecretDigest[] {
  return text.isWellFormed() ? digestKeys.all.map((key) => digestUnder(key, text)) : [];
}

function digestUnder(key: ServerKey, text: string): SecretDigest {
  return { keyId: key.id, digest: hmacSha256(key, text) };
}
