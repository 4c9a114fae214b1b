import { rootCause } from "../client/unreachable.ts";
import { type Monotonic, systemMonotonic } from "../lib/clock.ts";
import type {
  RejectedCredential,
  RejectionReason,
  VerifiedCredential,
  VerifiedKey,
  VerifiedToken,
  Verifier,
} from "./verdict.ts";

/** `R` is the request type of the framework. */
export interface AdmissionOptions<R = unknown> {
  /** Scopes that the credential must have, all of them. */
  readonly scopes?: readonly string[];
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

/** Returns a function that authenticates and authorizes requests, and reports those answered 503 to `onError`. */
export function createAdmission<R extends { readonly headers: RequestHeaders }, T extends VerifiedCredential>(
  verifier: Verifier<T>,
  { onError = warnAtIntervals(), ...options }: AdmissionOptions<R> = {},
): (request: R) => Promise<Admission<T>> {
  return async (request) => {
    const admission = await admit(request.headers, verifier, options);
    if (!admission.admitted && admission.error !== undefined) onError(admission.error, request);
    return admission;
  };
}

/**
 * Checks the credential in `Authorization: Bearer` or `X-API-Key` (RFC 6750). Returns 401 without a valid credential, 403 without the
 * scopes, 503 if it could not be verified, 400 with two credentials (§2).
 */
async function admit<T extends VerifiedCredential>(
  headers: RequestHeaders,
  verifier: Verifier<T>,
  { scopes = [], realm = "api" }: Pick<AdmissionOptions, "scopes" | "realm">,
): Promise<Admission<T>> {
  const [credential, ...more] = [bearer(headers.authorization), apiKey(headers["x-api-key"])].filter(Boolean);
  if (credential === undefined)
    return reject(401, "send a credential as Authorization: Bearer or X-API-Key", { realm });
  if (more.length > 0) return reject(400, "send one credential, not two", { realm, error: "invalid_request" });
  const verdict = await verifier.verify(credential);
  if (!verdict.ok) return rejectCredential(verdict, realm);
  const { credential: verified } = verdict;
  if (scopes.every((scope) => verified.scopes.includes(scope))) return { admitted: true, credential: verified };
  const scope = scopes.join(" ");
  return reject(403, `this needs the scope ${scope}`, { realm, error: "insufficient_scope", scope });
}

/** Messages to callers. They do not reveal whether a key ever existed. */
const MESSAGES: Readonly<Record<RejectionReason, string>> = {
  INVALID_FORMAT: "the credential is malformed",
  SIGNATURE_INVALID: "the credential is not valid",
  NOT_FOUND: "the credential is not valid",
  EXPIRED: "the credential has expired",
  REVOKED: "the credential is revoked",
  UNAVAILABLE: "the credential cannot be verified now",
};

function rejectCredential(rejected: RejectedCredential, realm: string): Rejection {
  const message = MESSAGES[rejected.reason];
  if (rejected.reason === "UNAVAILABLE") {
    const error = new VerificationUnavailable(rejected);
    return { ...reject(503, message, { realm }), headers: { "retry-after": "1" }, error };
  }
  return reject(401, message, { realm, error: "invalid_token" });
}

function bearer(authorization: RequestHeaders[string]): string {
  return /^bearer +(.+)$/i.exec(String(authorization ?? ""))?.[1]?.trim() ?? "";
}

function apiKey(header: RequestHeaders[string]): string {
  return String(header ?? "").trim();
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
