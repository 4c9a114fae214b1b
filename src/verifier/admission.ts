import { rootCause } from "../client/unreachable.ts";
import { type Monotonic, systemMonotonic } from "../lib/clock.ts";
import {
  type RejectedCredential,
  type RejectionReason,
  requireScopes,
  type VerifiedCredential,
  type VerifiedKey,
  type VerifiedToken,
  type Verifier,
} from "./verdict.ts";

/** `R` is the request type of the framework. */
export interface AdmissionOptions<R = unknown> {
  /** Scopes that the credential must have, all of them: at most 32. */
  readonly requiredScopes?: readonly string[];
  /** The name of this service as an audience. Without it, a token that is made for an audience is rejected. */
  readonly audience?: string;
  /** `realm` of `WWW-Authenticate` (RFC 9110 §11.5); `api` by default. */
  readonly realm?: string;
  /**
   * Called when a request is answered 503 because its credential could not be verified. The error names the cause and contains no
   * credential. By default the process emits a warning, at most every ten seconds.
   *
   * @example `onError: (error, request) => request.log.error(error)`
   */
  readonly onError?: (error: Error, request: R) => void;
}

/** A verified credential of any verifier. Fields that only one verifier knows may be absent. */
export type AdmittedCredential = VerifiedCredential &
  Partial<Pick<VerifiedKey, "credentialType" | "metadata">> &
  Partial<Pick<VerifiedToken, "tokenId" | "issueTime" | "parentId" | "claims">>;

/** Request headers as in Node: names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What is read of a request. */
export interface AdmittedRequest {
  readonly headers: RequestHeaders;
  /** The connection. A Unix socket has no address. */
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/** The response to a rejected request. */
export interface Rejection {
  readonly admitted: false;
  readonly status: 400 | 401 | 403 | 503;
  readonly headers: Readonly<Record<string, string>>;
  /** An error in Keyhold's format (AIP-193). */
  readonly body: { readonly error: { readonly code: number; readonly status: string; readonly message: string } };
  /** Why the credential could not be verified, for the log. */
  readonly error?: VerificationUnavailable;
}

export type Admission<T extends VerifiedCredential> = { readonly admitted: true; readonly credential: T } | Rejection;

const STATUSES = { 400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 503: "UNAVAILABLE" };

/**
 * Returns a function that authenticates and authorizes requests, and reports those answered 503 to `onError`. Throws a `TypeError` for
 * options that no request could meet.
 */
export function createAdmission<R extends AdmittedRequest, T extends VerifiedCredential>(
  verifier: Verifier<T>,
  { onError = warnAtIntervals(), ...options }: AdmissionOptions<R> = {},
): (request: R) => Promise<Admission<T>> {
  requireValid(options);
  return async (request) => {
    const admission = await admit(request, verifier, options);
    if (!admission.admitted && admission.error !== undefined) onError(admission.error, request);
    return admission;
  };
}

/**
 * Checks the credential in `Authorization: Bearer` or `X-API-Key`, and responds as RFC 6750 §3 says: 401 without a valid credential, 403
 * without the scopes, 400 with two credentials (§2); 503 if it could not be verified.
 */
async function admit<T extends VerifiedCredential>(
  { headers, socket }: AdmittedRequest,
  verifier: Verifier<T>,
  { requiredScopes = [], audience, realm = "api" }: Omit<AdmissionOptions, "onError">,
): Promise<Admission<T>> {
  const [credential, ...more] = [bearer(headers.authorization), apiKey(headers["x-api-key"])].filter(Boolean);
  if (credential === undefined)
    // §3.1: without authentication information, no error code.
    return reject(401, "send a credential as Authorization: Bearer or X-API-Key", { realm });
  if (more.length > 0) return rejectAs("invalid_request", "send one credential, not two", { realm });
  const clientIp = socket.remoteAddress;
  const verdict = await verifier.verify(credential, { clientIp, requiredScopes, audience });
  // A verifier of another make may ignore the scopes.
  const required = verdict.ok ? requireScopes(verdict.credential, requiredScopes) : verdict;
  if (required.ok) return { admitted: true, credential: required.credential };
  return rejectCredential(required, realm, requiredScopes);
}

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
  UNAVAILABLE: "the credential cannot be verified now",
};

/**
 * `invalid_token` is "expired, revoked, malformed, or invalid for other reasons" (§3.1), so also a credential that is disabled, or presented
 * at the wrong service or from the wrong address.
 */
function rejectCredential(rejected: RejectedCredential, realm: string, requiredScopes: readonly string[]): Rejection {
  const message = MESSAGES[rejected.reason];
  if (rejected.reason === "UNAVAILABLE") {
    const error = new VerificationUnavailable(rejected);
    return { ...reject(503, message, { realm }), headers: { "retry-after": "1" }, error };
  }
  if (rejected.reason !== "INSUFFICIENT_SCOPE") return rejectAs("invalid_token", message, { realm });
  // The scopes that are necessary, not only those that are missing (§3). A list without those that it cannot contain would mislead.
  const scope = requiredScopes.every(isScopeToken) ? { scope: requiredScopes.join(" ") } : {};
  const rejection = rejectAs("insufficient_scope", message, { realm, ...scope });
  const { error } = rejection.body;
  return { ...rejection, body: { error: { ...error, message: `${message}: ${rejected.missingScopes?.join(" ")}` } } };
}

/** The characters of a scope in a challenge (§3). Scopes of Keyhold may also contain `"` and `\`. */
function isScopeToken(scope: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope);
}

const MAX_REQUIRED_SCOPES = 32;
/** A scope or an audience. */
const NAME = /^[!-~]{1,255}$/;

function requireValid({ requiredScopes = [], audience, realm = "" }: Omit<AdmissionOptions, "onError">): void {
  if (requiredScopes.length > MAX_REQUIRED_SCOPES || !requiredScopes.every((scope) => NAME.test(scope)))
    throw new TypeError(`requiredScopes: at most ${MAX_REQUIRED_SCOPES} of 1 to 255 visible ASCII characters each`);
  if (audience !== undefined && !NAME.test(audience))
    throw new TypeError("audience: must be 1 to 255 visible ASCII characters");
  if (!/^[ -~]*$/.test(realm)) throw new TypeError("realm: must be printable ASCII");
}

function bearer(authorization: RequestHeaders[string]): string {
  return /^bearer +(.+)$/i.exec(String(authorization ?? ""))?.[1]?.trim() ?? "";
}

function apiKey(header: RequestHeaders[string]): string {
  return String(header ?? "").trim();
}

/** The status of each error code (§3.1). */
const ERROR_STATUSES = { invalid_request: 400, invalid_token: 401, insufficient_scope: 403 } as const;

/** Returns a rejection with an error code, which comes after the realm. */
function rejectAs(
  error: keyof typeof ERROR_STATUSES,
  message: string,
  { realm, ...others }: { readonly realm: string; readonly scope?: string },
): Rejection {
  return reject(ERROR_STATUSES[error], message, { realm, error, error_description: message, ...others });
}

/** Returns a rejection with a Bearer challenge of these parameters. */
function reject(status: Rejection["status"], message: string, parameters: Record<string, string>): Rejection {
  const headers = { "www-authenticate": toChallenge(parameters) };
  return { admitted: false, status, headers, body: { error: { code: status, status: STATUSES[status], message } } };
}

/** Formats a challenge. Values are quoted strings (RFC 9110 §5.6.4). */
function toChallenge(parameters: Record<string, string>): string {
  const quoted = Object.entries(parameters).map(([name, value]) => `${name}="${value.replace(/["\\]/g, "\\$&")}"`);
  return `Bearer ${quoted.join(", ")}`;
}

/** The reason why a request was answered 503: its credential could not be verified. The message names the cause. */
export class VerificationUnavailable extends Error {
  override readonly name = "VerificationUnavailable";

  constructor({ message, cause }: Pick<RejectedCredential, "message" | "cause">) {
    super(describe(message, cause), { cause });
  }
}

/** Milliseconds between warnings: during an outage every request fails. */
const WARNING_INTERVAL = 10_000;

/** Returns a listener that emits a process warning, which Node writes to standard error, at most every ten seconds. */
export function warnAtIntervals(monotonic: Monotonic = systemMonotonic): (error: Error) => void {
  let silentUntil = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (monotonic() < silentUntil) return;
    silentUntil = monotonic() + WARNING_INTERVAL;
    const text = `a request was answered 503: ${message} (set onError to receive every such error)`;
    process.emitWarning(text, { type: "KeyholdWarning" });
  };
}

function describe(message: string, cause: unknown): string {
  if (!(cause instanceof Error)) return message;
  const { text } = rootCause(cause);
  return [message, cause.message, text].filter((part, at, all) => !all[at - 1]?.includes(part)).join(": ");
}
