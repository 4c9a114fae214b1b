import { errors, type JWTPayload, jwtVerify } from "jose";
import { invalidArgument } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { type IssuerOptions, issuerKeys } from "./issuer-keys.ts";
import { type Fetch, IssuerUnavailable } from "./reader.ts";
import { readScopes } from "./scopes.ts";

export interface OidcOptions {
  /** The issuer identifier, exactly as the issuer writes it: an http or https URL without query and fragment. */
  readonly issuer: string;
  /** What `aud` must be or hold: the name of this service at the issuer. */
  readonly audience: string;
  /** The claim with the scopes, as for `readScopes`; `scope` if absent. */
  readonly scopeClaim?: string;
  readonly fetch?: Fetch;
  readonly clock: Clock;
  /** Milliseconds, as in `IssuerOptions`: 5 s, 30 s and 5 s if absent. */
  readonly retryPause?: number;
  readonly keysCooldown?: number;
  readonly timeout?: number;
}

export interface RefusedAccessToken {
  readonly ok: false;
  /** `ISSUER_UNAVAILABLE` says nothing of the token: its keys could not be read. */
  readonly reason: "INVALID" | "EXPIRED" | "ISSUER_UNAVAILABLE";
  /** For a person; holds nothing of the token. */
  readonly message: string;
  /** For the log: why the issuer could not be asked. */
  readonly cause?: unknown;
}

export type AccessTokenVerdict =
  | { readonly ok: true; readonly subject: string; readonly scopes: readonly string[]; readonly expireTime: Date }
  | RefusedAccessToken;

export interface OidcVerifier {
  /** Judges an access token (contract §7). Rejects on a fault of ours alone. */
  verify(token: string): Promise<AccessTokenVerdict>;
}

/** The signature algorithms of a public key (RFC 7518 §3.1, RFC 8037, RFC 9864): no secret that we would have to share. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** The issuer's clock and ours may differ by so many seconds. */
const CLOCK_TOLERANCE = 5;

/**
 * A verifier of the JWT access tokens (RFC 9068, any `typ`) of one OpenID Connect issuer. Nothing is fetched before the
 * first token of an acceptable form. Throws `INVALID_ARGUMENT` on an issuer that is not such a URL.
 */
export function createOidcVerifier(options: OidcOptions): OidcVerifier {
  const { issuer, audience, clock, scopeClaim = "scope" } = options;
  checkIssuer(issuer);
  const keys = issuerKeys(withDefaults(options));
  const rules = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims: ["exp", "sub"],
    clockTolerance: CLOCK_TOLERANCE,
  };
  return {
    verify: async (token) => {
      try {
        const { payload } = await jwtVerify(token, keys, { ...rules, currentDate: new Date(clock.now()) });
        return accepted(payload, scopeClaim);
      } catch (error) {
        return toRefusal(error);
      }
    },
  };
}

function withDefaults(options: OidcOptions): IssuerOptions {
  const {
    issuer,
    clock,
    fetch = globalThis.fetch,
    retryPause = 5_000,
    keysCooldown = 30_000,
    timeout = 5_000,
  } = options;
  return { issuer, clock, fetch, retryPause, keysCooldown, timeout };
}

function checkIssuer(issuer: string): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && !/[?#]/.test(issuer)) return;
  throw invalidArgument("issuer", "is not an http or https URL without query and fragment");
}

function accepted(payload: JWTPayload, scopeClaim: string): AccessTokenVerdict {
  const { sub, exp } = payload;
  if (typeof sub !== "string" || sub === "") return refused("INVALID", "the access token has no subject");
  if (exp === undefined) return refused("INVALID", "the access token has no expiry");
  return { ok: true, subject: sub, scopes: readScopes(payload, scopeClaim), expireTime: new Date(exp * 1000) };
}

/** The errors of jose that we know are verdicts; any other error is a fault and goes on. */
function toRefusal(error: unknown): RefusedAccessToken {
  if (error instanceof IssuerUnavailable || error instanceof errors.JWKSInvalid) {
    return { ...refused("ISSUER_UNAVAILABLE", "the issuer of the access token cannot be asked"), cause: error };
  }
  if (error instanceof errors.JWTExpired) return refused("EXPIRED", "the access token has expired");
  if (error instanceof errors.JWTClaimValidationFailed) {
    return refused("INVALID", `the claim ${error.claim} of the access token is not acceptable`);
  }
  if (error instanceof errors.JOSEError) return refused("INVALID", "the access token is not valid");
  throw error;
}

function refused(reason: RefusedAccessToken["reason"], message: string): RefusedAccessToken {
  return { ok: false, reason, message };
}
