import { createHash } from "node:crypto";
import { isInUse, newestFirst, type PublicSigningJwk, type SigningKeyRecord } from "./signing-key.ts";

/** A JWK Set (RFC 7517 §5). */
export interface Jwks {
  readonly keys: readonly PublicSigningJwk[];
}

/**
 * The public keys of all records in use at `now` (milliseconds), newest first: the same text on every node. Give it the
 * `records` of `SigningKeys`, which are known to be our own.
 */
export function jwksDocument(records: readonly SigningKeyRecord[], now: number): Jwks {
  return {
    keys: newestFirst(records.filter((record) => isInUse(record, now))).map(({ publicJwk }) => publicPart(publicJwk)),
  };
}

/** A strong entity tag (RFC 9110 §8.8.3) of the document as `JSON.stringify` prints it, quotes and all. */
export function jwksEtag(jwks: Jwks): string {
  return `"${createHash("sha256").update(JSON.stringify(jwks)).digest("base64url")}"`;
}

/** Names every member, so that none more gets out and their order, which a database need not keep, is fixed. */
function publicPart({ kty, crv, x, kid, use, alg }: PublicSigningJwk): PublicSigningJwk {
  return { kty, crv, x, kid, use, alg };
}
