import { createHash } from "node:crypto";
import type { PublicSigningJwk } from "./jwt/algorithms.ts";
import { isInUse, newestFirst, type SigningKeyRecord } from "./signing-key.ts";

/** A JWK Set (RFC 7517 §5). */
export interface Jwks {
  readonly keys: readonly PublicSigningJwk[];
}

/**
 * Returns the public keys of the records in use at `now` (milliseconds), newest first: the same text on every node. Pass the `records` of
 * `SigningKeys`, whose private keys have been unwrapped.
 */
export function jwksDocument(records: readonly SigningKeyRecord[], now: number): Jwks {
  return {
    keys: newestFirst(records.filter((record) => isInUse(record, now))).map(({ publicJwk }) => publicPart(publicJwk)),
  };
}

/** Returns a strong entity tag (RFC 9110 §8.8.3), quoted, of the document as printed by `JSON.stringify`. */
export function jwksEtag(jwks: Jwks): string {
  return `"${createHash("sha256").update(JSON.stringify(jwks)).digest("base64url")}"`;
}

/** Names every member, so that no other is published and the order, which a database need not preserve, is fixed. */
function publicPart({ kty, crv, x, y, kid, use, alg }: PublicSigningJwk): PublicSigningJwk {
  return { kty, crv, x, ...(y !== undefined && { y }), kid, use, alg };
}
