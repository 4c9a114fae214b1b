import { durationMs, timestampDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  type LimitStatus,
  VerificationError,
  type VerifyApiKeyResponse,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { createKeyholdClient, type KeyholdClient, type KeyholdClientOptions } from "../client/client.ts";
import { fieldViolations } from "../client/errors.ts";
import { type Clock, type Monotonic, systemClock, systemMonotonic } from "../lib/clock.ts";
import { retryAfterSeconds } from "../lib/rate-limit-fields.ts";
import { freshnessLifetime } from "./cache-control.ts";
import {
  type CredentialLimit,
  isLimitExceeded,
  type Presentation,
  type RejectedCredential,
  type RejectionReason,
  rejected,
  requireScopes,
  type Verdict,
  type VerifiedKey,
  type Verifier,
} from "./verdict.ts";
import { type Answer, cachingVerdicts, isLimited } from "./verdict-cache.ts";

/** A client, or the options to create one. */
export type KeyVerifierOptions = ({ readonly client: Pick<KeyholdClient, "apiKeys"> } | KeyholdClientOptions) & {
  /**
   * How long a verdict may be cached, in milliseconds, if the response does not say. By default nothing is cached, and a revocation takes
   * effect at once; otherwise it takes effect after at most this time.
   */
  readonly maxAgeMs?: number;
  /** Maximum number of cached verdicts; 10,000 by default. */
  readonly cacheSize?: number;
  /** Wall-clock time, for the expiry of credentials. */
  readonly clock?: Clock;
  /** Monotonic time, for the age of verdicts. */
  readonly monotonic?: Monotonic;
};

/**
 * Creates a verifier that calls Keyhold, for credentials of every kind. Its token needs the scope `keyhold:verify`.
 *
 * @example
 * const verifier = createKeyVerifier({ baseUrl: "https://keys.example.com", token });
 * const verdict = await verifier.verify(credential);
 * if (verdict.ok) allow(verdict.credential.scopes);
 */
export function createKeyVerifier(options: KeyVerifierOptions): Verifier<VerifiedKey> {
  const { maxAgeMs, cacheSize = 10_000, clock = systemClock, monotonic = systemMonotonic } = options;
  const client = "client" in options ? options.client : createKeyholdClient(options);
  const call = (credential: string, presentation: Presentation) =>
    callKeyhold(client, credential, presentation, maxAgeMs, clock);
  return { verify: cachingVerdicts(call, { maxAgeMs: maxAgeMs ?? 0, size: cacheSize, monotonic }) };
}

async function callKeyhold(
  { apiKeys }: Pick<KeyholdClient, "apiKeys">,
  credential: string,
  presentation: Presentation,
  maxAgeMs: number | undefined,
  clock: Clock,
): Promise<Answer> {
  let allowed: number | undefined;
  const onHeader = (headers: Headers) => {
    allowed = freshnessLifetime(headers);
  };
  try {
    const request = toRequest(credential, presentation);
    const verdict = toVerdict(await apiKeys.verifyApiKey(request, { onHeader }), presentation);
    return { verdict, lifetimeMs: lifetimeOf(verdict, allowed, maxAgeMs, clock) };
  } catch (error) {
    return { verdict: toRejection(error), lifetimeMs: 0 };
  }
}

/** Longest `client_ip` of a request. */
const MAX_ADDRESS_LENGTH = 255;

function toRequest(credential: string, { clientIp, requiredScopes = [], audience, charges = [] }: Presentation) {
  return {
    credential,
    requiredScopes: [...requiredScopes],
    charges: charges.map(({ name, cost }) => ({ name, cost })),
    ...(audience !== undefined && { audience }),
    // A longer text is no address, and its beginning is none either. The text may be what a client has sent.
    ...(clientIp !== undefined && { clientIp: clientIp.slice(0, MAX_ADDRESS_LENGTH) }),
  };
}

/** Returns the minimum of what the response and the options allow and the remaining lifetime of the credential. */
function lifetimeOf(
  verdict: Verdict<VerifiedKey>,
  allowed: number | undefined,
  maxAgeMs: number | undefined,
  clock: Clock,
): number {
  if (!verdict.ok && verdict.reason === "UNAVAILABLE") return 0;
  if (isLimited(verdict)) return 0;
  const rest =
    verdict.ok && verdict.credential.expireTime ? verdict.credential.expireTime.getTime() - clock.now() : Infinity;
  return Math.min(allowed ?? maxAgeMs ?? 0, maxAgeMs ?? Infinity, rest);
}

/** An error code that this release does not know yields `UNAVAILABLE`. */
function toReason(code: VerificationError): RejectionReason {
  const name = VerificationError[code] as keyof typeof VerificationError | undefined;
  return name === undefined || name === "UNSPECIFIED" || name === "INTERNAL" ? "UNAVAILABLE" : name;
}

function toVerdict(answer: VerifyApiKeyResponse, { requiredScopes }: Presentation): Verdict<VerifiedKey> {
  const { isValid, errorCode = VerificationError.UNSPECIFIED, errorMessage = "the credential is not valid" } = answer;
  // A server of an earlier release ignores the required scopes.
  if (isValid) return requireScopes(toCredential(answer), requiredScopes);
  const rejection = rejected(toReason(errorCode), errorMessage);
  if (isLimitExceeded(rejection.reason)) {
    return {
      ...rejection,
      limits: answer.limits.map(toLimit),
      retryAfter: retryAfterOf(answer),
      credential: toCredential(answer),
    };
  }
  if (errorCode !== VerificationError.INSUFFICIENT_SCOPE) return rejection;
  return { ...rejection, missingScopes: answer.missingScopes, credential: toCredential(answer) };
}

/** Returns the seconds after which no limit rejects the credential any more. */
function retryAfterOf({ limits }: VerifyApiKeyResponse): number {
  const exceeded = limits.filter(({ exceeded }) => exceeded);
  return retryAfterSeconds(exceeded.map(({ retryDelay }) => (retryDelay ? durationMs(retryDelay) : 0)));
}

function toLimit({ name, quota, window, remaining, resetTime, exceeded }: LimitStatus): CredentialLimit {
  return {
    ...{ name, quota, exceeded },
    ...(window !== "" && { window: Number.parseFloat(window) }),
    ...(remaining !== undefined && { remaining }),
    ...(resetTime && { resetTime: timestampDate(resetTime) }),
  };
}

function toCredential(answer: VerifyApiKeyResponse): VerifiedKey {
  const {
    keyId = "",
    actorId = "",
    scopes,
    issuer = "",
    expireTime,
    credentialType = 0,
    metadata,
    claims,
    limits,
  } = answer;
  return {
    ...{ keyId, actorId, scopes, issuer, credentialType, metadata },
    ...(limits.length > 0 && { limits: limits.map(toLimit) }),
    ...(expireTime && { expireTime: timestampDate(expireTime) }),
    ...(claims && { claims }),
  };
}

/** Returns whether Keyhold denies this credential because too many others of the client or of this service were wrong. */
function isLimitOnFailures(error: unknown): boolean {
  const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
  return info?.reason === "RATE_LIMITED" && /failed_verifications$/.test(info.metadata.limit ?? "");
}

/**
 * Errors other than INVALID_ARGUMENT yield `UNAVAILABLE`: Keyhold is unreachable or rejects this service's own token. A presentation that
 * the server does not accept is an error of this program.
 */
function toRejection(error: unknown): RejectedCredential<never> {
  if (isLimitOnFailures(error)) return rejected("RATE_LIMITED", "too many verifications fail", error);
  if (ConnectError.from(error).code !== Code.InvalidArgument) {
    return rejected("UNAVAILABLE", "the call to Keyhold failed", error);
  }
  const others = fieldViolations(error).filter(({ field }) => field !== "credential");
  if (others.length === 0) return rejected("INVALID_FORMAT", "the credential is empty or too long");
  const found = others.map(({ field, description }) => `${field}: ${description}`);
  throw new TypeError(found.join("; "), { cause: error });
}
