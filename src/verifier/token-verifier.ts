import { errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { type Clock, type Monotonic, systemClock, systemMonotonic } from "../lib/clock.ts";
import { isJsonObject } from "../lib/json.ts";
import { customClaims, isOurs, splitScopes } from "../token/jwt/claims.ts";
import { KeySet, KeysUnavailable } from "./key-set.ts";
import {
  type RefusalReason,
  type RejectedCredential,
  refusal,
  type Verdict,
  type VerifiedCredential,
  type VerifiedToken,
  type Verifier,
} from "./verdict.ts";

/** Durations are in milliseconds. */
export interface TokenVerifierOptions<T extends VerifiedCredential = never> {
  /** Where Keyhold is, such as `https://keys.example.com`; its JWKS is read from there. */
  readonly baseUrl?: string;
  /** Where the JWKS is, if not below `baseUrl`. */
  readonly jwksUrl?: string;
  /** What `iss` must be: `KEYHOLD_ISSUER` of the server. `keyhold` if absent, as there. */
  readonly issuer?: string;
  /**
   * Judges what cannot be judged offline: credentials that are no JWT, and tokens while the keys cannot be read. Best one of
   * `createKeyVerifier`. Without it they are refused.
   */
  readonly online?: Verifier<T>;
  /** How far your clock may be behind that of Keyhold; 5 s if absent. A token is good for so much longer. */
  readonly clockToleranceMs?: number;
  /** How long keys are used that should have been read again, while the server cannot be reached; 1 h if absent. */
  readonly maxStalenessMs?: number;
  /** How long after a read of the keys no unknown `kid` makes another; 5 s if absent. */
  readonly cooldownMs?: number;
  /** How long one read of the keys may take; 5 s if absent. */
  readonly timeoutMs?: number;
  readonly fetch?: typeof globalThis.fetch;
  /** The time of day, by which tokens expire. */
  readonly clock?: Clock;
  /** A clock that never steps, by which keys grow old. */
  readonly monotonic?: Monotonic;
}

const JWKS_PATH = "/v2alpha1/derivedKeys/jwks.json";

/** What `online` is asked about. A signature that is wrong, or a token that has expired, is so online too. */
const UNDECIDED: ReadonlySet<RefusalReason> = new Set(["INVALID_FORMAT", "UNAVAILABLE"]);

/**
 * A verifier of derived JWTs by their signature (EdDSA alone), without asking Keyhold about each.
 *
 * It does not see a revocation: a token whose key is revoked, or whose secret is rotated away, stays good here until it expires. Derive
 * tokens that live for minutes, or ask Keyhold with `createKeyVerifier` where revoked must mean revoked at once.
 *
 * Throws `TypeError` if the address of the keys is not an http or https URL.
 */
export function createTokenVerifier<T extends VerifiedCredential = never>(
  options: TokenVerifierOptions<T>,
): Verifier<VerifiedToken | T> {
  const { issuer = "keyhold", clockToleranceMs = 5_000, clock = systemClock, online } = options;
  const keys = new KeySet({ ...withDefaults(options), url: keysUrl(options) });
  const rules = { algorithms: ["EdDSA"], typ: "JWT", issuer, clockTolerance: clockToleranceMs / 1000 };
  return {
    verify: async (credential) => {
      const verdict = await judge(credential, keys, { ...rules, currentDate: new Date(clock.now()) });
      return online === undefined || verdict.ok || !UNDECIDED.has(verdict.reason) ? verdict : online.verify(credential);
    },
  };
}

function withDefaults(options: TokenVerifierOptions<VerifiedCredential>) {
  const { fetch = globalThis.fetch, monotonic = systemMonotonic } = options;
  const { timeoutMs = 5_000, cooldownMs = 5_000, maxStalenessMs = 3_600_000 } = options;
  return { fetch, monotonic, timeoutMs, cooldownMs, maxStalenessMs };
}

function keysUrl({ baseUrl, jwksUrl }: TokenVerifierOptions<VerifiedCredential>): string {
  const url = jwksUrl ?? `${baseUrl?.replace(/\/$/, "")}${JWKS_PATH}`;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  throw new TypeError(`${jwksUrl === undefined ? "baseUrl" : "jwksUrl"}: must be an http or https URL`);
}

/**
 * The one text of a token of ours (RFC 7515 §7.1): three parts of base64url, the last of them 64 bytes with no stray bits. jose takes
 * white space, padding and stray bits too, by which one token could be written in several ways.
 */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/;

async function judge(token: string, keys: KeySet, rules: JWTVerifyOptions): Promise<Verdict<VerifiedToken>> {
  try {
    if (!COMPACT.test(token)) throw new errors.JWSInvalid();
    const { payload } = await jwtVerify(token, keys.find, rules);
    return toVerdict(payload);
  } catch (error) {
    return toRefusal(error);
  }
}

/** By the same rules for claims as the server has. */
function toVerdict(payload: JWTPayload): Verdict<VerifiedToken> {
  const set: unknown = payload;
  if (!isJsonObject(set) || !isOurs(set)) return refusal("INVALID_FORMAT", "the claims are not those of Keyhold");
  const credential = {
    keyId: set.key_id,
    actorId: set.sub,
    scopes: splitScopes(set.scope),
    issuer: set.iss,
    tokenId: set.jti,
    issueTime: new Date(set.iat * 1000),
    expireTime: new Date(set.exp * 1000),
    ...(set.parent_id === undefined ? {} : { parentId: set.parent_id }),
    claims: customClaims(set),
  };
  return { ok: true, credential };
}

/** Errors of jose that say that a token is malformed; any other of them is about its signature, its key or its issuer. */
const MALFORMED = [errors.JWSInvalid, errors.JWTInvalid];

/** The errors of jose are verdicts; any other error is a fault and goes on. */
function toRefusal(error: unknown): RejectedCredential {
  if (error instanceof KeysUnavailable) return refusal("UNAVAILABLE", error.message, error);
  if (error instanceof errors.JWTExpired) return refusal("EXPIRED", "the token has expired");
  if (MALFORMED.some((malformed) => error instanceof malformed)) {
    return refusal("INVALID_FORMAT", "the token is not a well-formed JWT");
  }
  if (error instanceof errors.JOSEError) return refusal("SIGNATURE_INVALID", "the token was not made by this Keyhold");
  throw error;
}
