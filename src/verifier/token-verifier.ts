import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { type Clock, type Monotonic, systemClock, systemMonotonic } from "../lib/clock.ts";
import { isJsonObject } from "../lib/json.ts";
import { audienceOf, customClaims, isOurs, splitScopes } from "../token/jwt/claims.ts";
import { createKeySet, type FindKey, KeysUnavailable } from "./key-set.ts";
import {
  type Presentation,
  type RejectedCredential,
  type RejectionReason,
  rejected,
  requireScopes,
  type Verdict,
  type VerifiedCredential,
  type VerifiedToken,
  type Verifier,
} from "./verdict.ts";

/** Durations are in milliseconds. */
export interface TokenVerifierOptions<T extends VerifiedCredential = never> {
  /** The server's address, such as `https://keys.example.com`, from which the JWKS is read. */
  readonly baseUrl?: string;
  /** The address of the JWKS, if not below `baseUrl`. */
  readonly jwksUrl?: string;
  /** Required value of `iss`: the server's `KEYHOLD_ISSUER`; `keyhold` by default. */
  readonly issuer?: string;
  /**
   * Verifies what cannot be verified offline: other credentials than JWTs, and tokens while the signing keys cannot be read. Usually a
   * `createKeyVerifier`. Without it they are rejected.
   */
  readonly online?: Verifier<T>;
  /** Allowed clock skew: a token is accepted this long after it expires; 5 s by default. */
  readonly clockToleranceMs?: number;
  /** How long expired keys remain usable while the server is unreachable; 1 h by default. */
  readonly maxStalenessMs?: number;
  /** Minimum time between reads of the keys for an unknown `kid`; 5 s by default. */
  readonly cooldownMs?: number;
  /** Timeout of a read of the keys; 5 s by default. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  /** Wall-clock time, for the expiry of tokens. */
  readonly clock?: Clock;
  /** Monotonic time, for the age of keys. */
  readonly monotonic?: Monotonic;
}

const JWKS_PATH = "/v2alpha1/derivedKeys/jwks.json";

/** Reasons that `online` may overrule. It would confirm an invalid signature and an expired token. */
const INCONCLUSIVE: ReadonlySet<RejectionReason> = new Set(["INVALID_FORMAT", "UNAVAILABLE"]);

/**
 * Creates a verifier of derived JWTs (EdDSA or ES256, as their key says) by their signature, without a call to Keyhold per token.
 *
 * It checks what the token says: its signature, issuer, expiry, audience and scopes. It does not know its key: after the key is revoked,
 * disabled or restricted to other addresses, loses scopes, or expires earlier than before, or after its secret is rotated, a token remains
 * valid here until it expires. `clientIp` has no effect. Use short lifetimes, or `createKeyVerifier` where such a change must take effect at
 * once. Pass `audience`, so that a token that was made for another service is rejected.
 *
 * @example
 * const online = createKeyVerifier({ baseUrl, token });
 * const verifier = createTokenVerifier({ baseUrl, online });
 * const verdict = await verifier.verify(credential, { audience: "books", requiredScopes: ["books.read"] });
 * @throws `TypeError` if the address of the keys is not an http or https URL.
 */
export function createTokenVerifier<T extends VerifiedCredential = never>(
  options: TokenVerifierOptions<T>,
): Verifier<VerifiedToken | T> {
  const { issuer = "keyhold", clockToleranceMs = 5_000, clock = systemClock, online } = options;
  const { fetch = globalThis.fetch, monotonic = systemMonotonic } = options;
  const { timeoutMs = 5_000, cooldownMs = 5_000, maxStalenessMs = 3_600_000 } = options;
  const findKey = createKeySet({ url: keysUrl(options), fetch, monotonic, timeoutMs, cooldownMs, maxStalenessMs });
  const rules = { algorithms: ["EdDSA", "ES256"], typ: "JWT", issuer, clockTolerance: clockToleranceMs / 1000 };
  return {
    verify: async (credential, presentation = {}) => {
      const verdict = await verifyToken(credential, findKey, { ...rules, currentDate: new Date(clock.now()) });
      if (verdict.ok) return requireAccess(verdict.credential, presentation);
      return online === undefined || !INCONCLUSIVE.has(verdict.reason)
        ? verdict
        : online.verify(credential, presentation);
    },
  };
}

/** Makes the checks of the server that the token alone decides, in its order (`verify/checks.ts`). */
function requireAccess(token: VerifiedToken, { requiredScopes, audience }: Presentation): Verdict<VerifiedToken> {
  const allowed = token.audience;
  if (audience === undefined && allowed !== undefined) {
    return rejected("AUDIENCE_MISMATCH", "the token has an audience, but this service specifies none");
  }
  if (audience !== undefined && !allowed?.includes(audience)) {
    return rejected("AUDIENCE_MISMATCH", "the token is not for this audience");
  }
  return requireScopes(token, requiredScopes);
}

function keysUrl({ baseUrl, jwksUrl }: TokenVerifierOptions<VerifiedCredential>): string {
  const url = jwksUrl ?? `${baseUrl?.replace(/\/$/, "")}${JWKS_PATH}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new TypeError(`${jwksUrl === undefined ? "baseUrl" : "jwksUrl"}: must be an http or https URL`);
}

/**
 * The canonical compact serialization (RFC 7515 §7.1): three parts of base64url, the signature 64 bytes without stray bits. jose also
 * accepts white space, padding and stray bits, so that one token would have several texts.
 */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/;

async function verifyToken(token: string, findKey: FindKey, rules: JWTVerifyOptions): Promise<Verdict<VerifiedToken>> {
  try {
    if (!COMPACT.test(token)) throw new errors.JWSInvalid();
    const { payload } = await jwtVerify(token, findKey, rules);
    return toVerdict(payload);
  } catch (error) {
    return toRejection(error);
  }
}

/** Applies the server's rules for claims. */
function toVerdict(payload: JWTPayload): Verdict<VerifiedToken> {
  const set: unknown = payload;
  if (!isJsonObject(set) || !isOurs(set)) return rejected("INVALID_FORMAT", "the token lacks valid Keyhold claims");
  const audience = audienceOf(set);
  const credential = {
    keyId: set.key_id,
    actorId: set.sub,
    scopes: splitScopes(set.scope),
    issuer: set.iss,
    tokenId: set.jti,
    issueTime: new Date(set.iat * 1000),
    expireTime: new Date(set.exp * 1000),
    ...(set.parent_id === undefined ? {} : { parentId: set.parent_id }),
    ...(audience === undefined ? {} : { audience }),
    claims: customClaims(set),
  };
  return { ok: true, credential };
}

/** jose's errors for malformed tokens. Its other errors concern the signature, the key or the issuer. */
const MALFORMED = [errors.JWSInvalid, errors.JWTInvalid];

/** Maps jose's errors to rejections; rethrows others. */
function toRejection(error: unknown): RejectedCredential<never> {
  if (error instanceof KeysUnavailable) return rejected("UNAVAILABLE", error.message, error);
  if (error instanceof errors.JWTExpired) return rejected("EXPIRED", "the token has expired");
  if (MALFORMED.some((malformed) => error instanceof malformed)) {
    return rejected("INVALID_FORMAT", "the token is not a well-formed JWT");
  }
  if (error instanceof errors.JOSEError)
    return rejected("SIGNATURE_INVALID", "the token was not issued by this Keyhold deployment");
  throw error;
}
