import { errors, type JWTPayload, jwtVerify } from "jose";
import { invalidArgument } from "../../domain/errors.ts";
import { isStorable, readActors, readScopes } from "./claims.ts";
import { type IssuerOptions, IssuerUnavailable, issuerKeys } from "./issuer-keys.ts";

export interface OidcOptions extends IssuerOptions {
  /** Required value of `aud`: the name of this service at the issuer. */
  readonly audience: string;
  /** The claim with the scopes, as in `readScopes`; `scope` by default. */
  readonly scopeClaim?: string;
  /** The claim with the actors to which the caller is restricted, as in `readActors`; undefined: nobody is restricted. */
  readonly actorsClaim?: string;
}

export interface RejectedAccessToken {
  readonly ok: false;
  /** `ISSUER_UNAVAILABLE`: the keys could not be read, so the token was not verified. */
  readonly reason: "INVALID" | "EXPIRED" | "ISSUER_UNAVAILABLE";
  /** For people; contains nothing of the token. */
  readonly message: string;
  /** Why the issuer could not be read, for the log. */
  readonly cause?: unknown;
}

export type AccessTokenVerdict =
  | {
      readonly ok: true;
      readonly subject: string;
      readonly scopes: readonly string[];
      /** The actors to which the caller is restricted; null: any. */
      readonly actorIds: readonly string[] | null;
      readonly expireTime: Date;
    }
  | RejectedAccessToken;

export type OidcVerifier = ReturnType<typeof createOidcVerifier>;

/** Public-key signature algorithms (RFC 7518 §3.1, RFC 8037, RFC 9864). HMAC would need a shared secret. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** The last second of the year 9999: PostgreSQL does not read how JavaScript writes later years. */
const MAX_EXPIRY = 253_402_300_799;

/** Allowed clock skew in seconds. */
const CLOCK_TOLERANCE = 5;

/**
 * Creates a verifier of JWT access tokens (RFC 9068, any `typ`) of one OpenID Connect issuer. Nothing is fetched before the first well-formed
 * token. Throws `INVALID_ARGUMENT` if the issuer is not such a URL.
 */
export function createOidcVerifier(options: OidcOptions) {
  const { issuer, audience, clock } = options;
  checkIssuer(issuer);
  const keys = issuerKeys(options);
  const rules = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    requiredClaims: ["exp", "sub"],
    clockTolerance: CLOCK_TOLERANCE,
  };
  return {
    issuer,
    /** Verifies an access token. Rejects only on a programming error. */
    verify: async (token: string): Promise<AccessTokenVerdict> => {
      try {
        const { payload } = await jwtVerify(token, keys, { ...rules, currentDate: new Date(clock.now()) });
        return accepted(payload, options);
      } catch (error) {
        return toRejection(error);
      }
    },
  };
}

function checkIssuer(issuer: string): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && !/[?#]/.test(issuer)) return;
  throw invalidArgument("issuer", "must be an http or https URL without a query or fragment");
}

function accepted(payload: JWTPayload, { scopeClaim = "scope", actorsClaim }: OidcOptions): AccessTokenVerdict {
  const { sub, exp } = payload;
  if (typeof sub !== "string" || !isStorable(sub)) return notAcceptable("sub");
  if (exp === undefined || exp > MAX_EXPIRY) return notAcceptable("exp");
  const actorIds = actorsClaim === undefined ? null : readActors(payload, actorsClaim);
  return {
    ok: true,
    subject: sub,
    scopes: readScopes(payload, scopeClaim),
    actorIds,
    expireTime: new Date(exp * 1000),
  };
}

/** Maps jose's errors to rejections; rethrows others. */
function toRejection(error: unknown): RejectedAccessToken {
  if (error instanceof IssuerUnavailable || error instanceof errors.JWKSInvalid) {
    return { ...rejected("ISSUER_UNAVAILABLE", "the issuer of access tokens is unreachable"), cause: error };
  }
  if (error instanceof errors.JWTExpired) return rejected("EXPIRED", "the access token has expired");
  if (error instanceof errors.JWTClaimValidationFailed) return notAcceptable(error.claim);
  if (error instanceof errors.JOSEError) return rejected("INVALID", "the access token is not valid");
  throw error;
}

function notAcceptable(claim: string): RejectedAccessToken {
  return rejected("INVALID", `the claim ${claim} of the access token is not valid`);
}

function rejected(reason: RejectedAccessToken["reason"], message: string): RejectedAccessToken {
  return { ok: false, reason, message };
}
