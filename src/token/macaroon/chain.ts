import { createHmac } from "node:crypto";

/** The label under which libmacaroons derives the first key of a chain. */
const KEY_GENERATOR = Buffer.from("macaroons-key-generator");

/**
 * The signature over an identifier and its first-party caveats, 32 bytes: HMAC-SHA-256 keyed by the root key as libmacaroons
 * derives it, then once for each caveat under the signature before it (Birgisson et al., NDSS 2014, §IV).
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
