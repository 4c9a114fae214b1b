import { rootCause } from "../client/unreachable.ts";
import { rateLimitFields } from "../lib/rate-limit-fields.ts";
import { type CredentialLimit, isLimitExceeded, type RejectedCredential, type RejectionReason } from "./verdict.ts";

/** The response to a rejected request. */
export interface Rejection {
  readonly admitted: false;
  readonly status: 400 | 401 | 403 | 429 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** An error in Keyhold's format (AIP-193). */
  readonly body: { readonly error: ErrorBody };
  /** Why the credential could not be verified, for the log. */
  readonly error?: VerificationUnavailable;
}

interface ErrorBody {
  readonly code: number;
  readonly status: string;
  readonly message: string;
  /** With 429: `google.rpc.ErrorInfo` and `google.rpc.RetryInfo`, as in errors of Keyhold. */
  readonly details?: readonly object[];
}

const STATUSES = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

/** Messages to callers. They do not reveal whether a key ever existed. */
const MESSAGES: Readonly<Record<RejectionReason, string>> = {
  INVALID_FORMAT: "the credential is malformed",
  SIGNATURE_INVALID: "the credential is not valid",
  NOT_FOUND: "the credential is not valid",
  EXPIRED: "the credential has expired",
  REVOKED: "the credential is revoked",
  DISABLED: "the credential is disabled",
  // Otherwise a thief would learn that the credential is valid at another address.
  IP_NOT_ALLOWED: "the credential is not valid",
  AUDIENCE_MISMATCH: "the credential is not for this service",
  INSUFFICIENT_SCOPE: "the credential lacks a required scope",
  RATE_LIMITED: "too many requests",
  QUOTA_EXCEEDED: "the quota is used up",
  UNAVAILABLE: "the credential cannot be verified now",
};

/**
 * Returns the response to a rejected credential (RFC 6750 §3). A credential that is disabled, for another service or at a wrong address is
 * "invalid for other reasons": `invalid_token` (§3.1).
 */
export function rejectCredential(
  rejected: RejectedCredential,
  realm: string,
  requiredScopes: readonly string[],
  now: number,
): Rejection {
  const message = MESSAGES[rejected.reason];
  if (rejected.reason === "UNAVAILABLE") {
    const error = new VerificationUnavailable(rejected);
    return { ...reject(503, message, { realm }), headers: { "retry-after": "1" }, error };
  }
  if (isLimitExceeded(rejected.reason)) return rejectLimited(rejected, message, now);
  if (rejected.reason !== "INSUFFICIENT_SCOPE") return rejectAs("invalid_token", message, { realm });
  // The scopes that are necessary, not only those that are missing (§3). A list without those that it cannot contain would mislead.
  const scope = requiredScopes.every((name) => SCOPE_TOKEN.test(name)) ? { scope: requiredScopes.join(" ") } : {};
  const rejection = rejectAs("insufficient_scope", message, { realm, ...scope });
  const { error } = rejection.body;
  return { ...rejection, body: { error: { ...error, message: `${message}: ${rejected.missingScopes?.join(" ")}` } } };
}

/** Returns the response to a credential whose limit is exceeded (RFC 6585 §4), with the details that a gateway's has. */
function rejectLimited({ reason, retryAfter = 1, limits = [] }: RejectedCredential, message: string, now: number) {
  const { body, ...rejection } = reject(429, message, {});
  const metadata = { error_code: `VERIFICATION_ERROR_${reason}` };
  const details = [
    { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "RATE_LIMITED", domain: "keyhold", metadata },
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: `${retryAfter}s` },
  ];
  const headers = { "retry-after": `${retryAfter}`, ...limitHeaders(limits, now) };
  return { ...rejection, headers, body: { error: { ...body.error, details } } };
}

/** Returns the header fields about limits, at `now` (milliseconds). */
export function limitHeaders(limits: readonly CredentialLimit[], now: number): Record<string, string> {
  return rateLimitFields(
    limits.map(({ name, quota, window, remaining, resetTime }) => ({
      ...{ name, quota, window, remaining },
      reset: resetTime && Math.max(0, (resetTime.getTime() - now) / 1000),
    })),
  );
}

/** The characters of a scope in a challenge (§3). Scopes of Keyhold may also contain `"` and `\`. */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** The status of each error code (§3.1). */
const ERROR_STATUSES = { invalid_request: 400, invalid_token: 401, insufficient_scope: 403 } as const;

/** Returns a rejection with an error code, which comes after the realm. */
export function rejectAs(
  error: keyof typeof ERROR_STATUSES,
  message: string,
  { realm, ...others }: { readonly realm: string; readonly scope?: string },
): Rejection {
  return reject(ERROR_STATUSES[error], message, { realm, error, error_description: message, ...others });
}

/** Returns a rejection with a Bearer challenge of these parameters. */
export function reject(status: Rejection["status"], message: string, parameters: Record<string, string>): Rejection {
  const headers = { "www-authenticate": toChallenge(parameters) };
  return { admitted: false, status, headers, body: { error: { code: status, status: STATUSES[status], message } } };
}

/** Formats a challenge. Values are quoted strings (RFC 9110 §5.6.4). */
function toChallenge(parameters: Record<string, string>): string {
  const quoted = Object.entries(parameters).map(([name, value]) => `${name}="${value.replace(/["\\]/g, "\\$&")}"`);
  return `Bearer ${quoted.join(", ")}`;
}

/** The reason why responded with 503 to a request: its credential could not be verified. The message names the cause. */
export class VerificationUnavailable extends Error {
  override readonly name = "VerificationUnavailable";

  constructor({ message, cause }: Pick<RejectedCredential, "message" | "cause">) {
    super(describe(message, cause), { cause });
  }
}

function describe(message: string, cause: unknown): string {
  if (!(cause instanceof Error)) return message;
  const { text } = rootCause(cause);
  return [message, cause.message, text].filter((part, at, all) => !all[at - 1]?.includes(part)).join(": ");
}
