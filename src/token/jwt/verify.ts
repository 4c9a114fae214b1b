import type { JsonObject } from "../../lib/json.ts";
import { type RejectedToken, rejected, type TokenVerdict } from "../token.ts";
import { ALGORITHMS } from "./algorithms.ts";
import { audienceOf, customClaims, faultyClaim, isOurs, type OurClaims, splitScopes } from "./claims.ts";
import { type CompactJws, decodeCompact, decodeJsonObject } from "./compact.ts";
import type { JwtContent } from "./mint.ts";
import type { VerificationKey } from "./signing-keys.ts";

export interface JwtVerification {
  /** Returns the key of a `kid`, if it may still verify. */
  keys(kid: string): VerificationKey | undefined;
  readonly issuer: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Verifies a Keyhold JWT (RFC 7519 §7.2, with RFC 8725): format, signature, claims, issuer, expiry, in that order, so that no claim is read
 * before the signature is verified. `exp` is exclusive (RFC 7519 §4.1.4), without clock skew, since Keyhold verifies what it issued.
 * Never throws.
 */
export function verifyJwt(text: string, { keys, issuer, now }: JwtVerification): TokenVerdict<JwtContent> {
  const jws = decodeCompact(text);
  if (jws === undefined) return rejected("INVALID_FORMAT", "the token is not a well-formed JWT");
  const rejection = checkSignature(jws, keys);
  if (rejection !== undefined) return rejection;
  const claims = decodeJsonObject(jws.payload);
  if (claims === undefined) return rejected("INVALID_FORMAT", "the claims of the token are not a JSON object");
  if (!isOurs(claims)) return rejected("INVALID_FORMAT", `the claim ${faultyClaim(claims)} is missing or malformed`);
  if (claims.iss !== issuer) return rejected("SIGNATURE_INVALID", "the token has a different issuer");
  if (now >= claims.exp * 1000) return { ...rejected("EXPIRED", "the token has expired"), expired: toToken(claims) };
  return { ok: true, token: toToken(claims) };
}

/**
 * The key comes from the key set and the algorithm from the key; the header must name both, and nothing else of it is used (RFC 8725 §3.1).
 */
function checkSignature(
  { header, signature, signedData }: CompactJws,
  keys: JwtVerification["keys"],
): RejectedToken | undefined {
  const { alg, kid, typ } = header;
  if (typeof alg !== "string" || typeof kid !== "string" || typ !== "JWT") {
    return rejected("INVALID_FORMAT", "the token does not have the header of a Keyhold JWT");
  }
  // RFC 7515 §4.1.11: no extension is supported, so a JWS with `crit` must be rejected.
  if (Object.hasOwn(header, "crit")) return rejected("INVALID_FORMAT", "the crit header is not supported");
  if (!Object.hasOwn(ALGORITHMS, alg)) return rejected("SIGNATURE_INVALID", OTHER_ALGORITHM);
  const key = keys(kid);
  if (key === undefined) return rejected("SIGNATURE_INVALID", "unknown signing key");
  const { algorithm, publicKey } = key;
  if (alg !== algorithm.alg) return rejected("SIGNATURE_INVALID", OTHER_ALGORITHM);
  if (signature.length === algorithm.signatureSize && algorithm.verify(signedData, publicKey, signature)) return;
  return rejected("SIGNATURE_INVALID", "the signature of the token is not valid");
}

const OTHER_ALGORITHM = "the token is not signed with the expected algorithm";

function toToken(claims: JsonObject & OurClaims): JwtContent {
  const audience = audienceOf(claims);
  return {
    tokenId: claims.jti,
    keyId: claims.key_id,
    secretVersion: claims.secret_version,
    actorId: claims.sub,
    issuer: claims.iss,
    issueTime: claims.iat * 1000,
    expireTime: claims.exp * 1000,
    scopes: splitScopes(claims.scope),
    claims: customClaims(claims),
    ...(claims.parent_id !== undefined && { parentId: claims.parent_id }),
    ...(audience !== undefined && { audience }),
  };
}
