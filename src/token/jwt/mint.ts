import type { JsonObject } from "../../lib/json.ts";
import type { MintedToken, TokenContent } from "../token.ts";
import { checkCustomClaims, faultyClaim, numericDate } from "./claims.ts";
import { encodeCompact } from "./compact.ts";
import type { ActiveSigningKey } from "./signing-keys.ts";

export interface JwtContent extends TokenContent {
  /** Claim `sub`. */
  readonly actorId: string;
}

export interface MintInput extends JwtContent {
  readonly signingKey: ActiveSigningKey;
}

/**
 * Signs a JWT (RFC 7519) with the algorithm of the key. Throws `INVALID_ARGUMENT` on a custom claim with a reserved name, and `RangeError`
 * on content that `verifyJwt` would not accept, which is a programming error.
 */
export function mintJwt(input: MintInput): MintedToken {
  checkCustomClaims(input.claims);
  const { kid, algorithm, privateKey } = input.signingKey;
  const header = { alg: algorithm.alg, typ: "JWT", kid };
  const token = encodeCompact(header, toClaims(input), (data) => algorithm.sign(data, privateKey));
  return { token, expireTime: numericDate(input.expireTime) * 1000 };
}

function toClaims(content: JwtContent): JsonObject {
  const set: JsonObject = {
    iss: content.issuer,
    sub: content.actorId,
    ...(content.audience !== undefined && { aud: [...content.audience] }),
    jti: content.tokenId,
    iat: numericDate(content.issueTime),
    exp: numericDate(content.expireTime),
    scope: joinScopes(content.scopes),
    key_id: content.keyId,
    secret_version: content.secretVersion,
    ...(content.parentId !== undefined && { parent_id: content.parentId }),
    ...content.claims,
  };
  const faulty = faultyClaim(set);
  if (faulty !== undefined) throw new RangeError(`the claim ${faulty} has an invalid value`);
  return set;
}

/** Rejects scopes with spaces, which would be read back as several. */
function joinScopes(scopes: readonly string[]): string {
  if (scopes.some((scope) => scope === "" || scope.includes(" ")))
    throw new RangeError("a scope must not contain spaces");
  return scopes.join(" ");
}
