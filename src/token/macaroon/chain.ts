import macaroon from "macaroon";

/**
 * The signature over an identifier and its first-party caveats, 32 bytes: HMAC-SHA-256 keyed by the root key as libmacaroons
 * derives it (label "macaroons-key-generator"), then once for each caveat under the signature before it.
 */
export function chainSignature(
  rootKey: Uint8Array,
  identifier: Uint8Array,
  conditions: readonly Uint8Array[],
): Uint8Array {
  const chain = macaroon.newMacaroon({ rootKey, identifier });
  for (const condition of conditions) chain.addFirstPartyCaveat(condition);
  return chain.signature;
}
