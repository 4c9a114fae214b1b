import { createHmac } from "node:crypto";

/** The label with which libmacaroons derives the first key of a chain. */
const KEY_GENERATOR = Buffer.from("macaroons-key-generator");

/**
 * Returns the 32-byte signature of an identifier and its first-party caveats: HMAC-SHA-256 under the root key, derived as in libmacaroons,
 * then for each caveat under the previous signature (Birgisson et al., NDSS 2014, §IV).
 */
export function chainSignature(
  rootKey: Uint8Array,
  identifier: Uint8Array,
  conditions: readonly Uint8Array[],
): Uint8Array {
  return conditions.reduce(hmacSha256, hmacSha256(hmacSha256(KEY_GENERATOR, rootKey), identifier));
}

function hmacSha256(key: Uint8Array, message: Uint8Array): Buffer {
  return createHmac("sha256", key).update(message).digest();
}
