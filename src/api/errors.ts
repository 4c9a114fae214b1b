import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  QuotaFailureSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";
import { type ErrorCode, KeyholdError } from "../domain/errors.ts";
import { memoize } from "../lib/memoize.ts";

/** `domain` of every ErrorInfo (AIP-193). */
export const ERROR_DOMAIN = "keyhold";

/** Maps domain errors to gRPC codes. FAILED_PRECONDITION is HTTP 409 on the REST paths. */
export const CODES: Readonly<Record<ErrorCode, Code>> = {
  INVALID_ARGUMENT: Code.InvalidArgument,
  API_KEY_NOT_FOUND: Code.NotFound,
  RAW_KEY_ALREADY_EXISTS: Code.AlreadyExists,
  LOOKUP_PREFIX_ALREADY_EXISTS: Code.AlreadyExists,
  HMAC_KEY_NOT_FOUND: Code.NotFound,
  HMAC_KEY_ALREADY_EXISTS: Code.AlreadyExists,
  HMAC_KEY_IN_USE: Code.FailedPrecondition,
  TOO_MANY_HMAC_KEYS: Code.FailedPrecondition,
  TOO_MANY_HASH_SCHEMES: Code.FailedPrecondition,
  TOO_MANY_PREFIX_LENGTHS: Code.FailedPrecondition,
  REQUEST_ID_REUSED: Code.AlreadyExists,
  API_KEY_ALREADY_REVOKED: Code.FailedPrecondition,
  API_KEY_REVOKED: Code.FailedPrecondition,
  API_KEY_EXPIRED: Code.FailedPrecondition,
  TOO_MANY_VALID_SECRETS: Code.FailedPrecondition,
  SERVERS_OUTDATED: Code.FailedPrecondition,
  CONCURRENT_CHANGE: Code.Aborted,
  EXPECTED_COUNT_DIFFERS: Code.FailedPrecondition,
  LIST_TOO_SLOW: Code.FailedPrecondition,
  QUOTA_NOT_FOUND: Code.NotFound,
  ACTOR_NOT_FOUND: Code.NotFound,
  AUDIT_EVENT_NOT_FOUND: Code.NotFound,
  AUDIT_SEQ_OUT_OF_RANGE: Code.OutOfRange,
  WATCH_TOO_SLOW: Code.Unavailable,
  WEBHOOK_ENDPOINT_NOT_FOUND: Code.NotFound,
  WEBHOOK_ENDPOINT_ALREADY_EXISTS: Code.AlreadyExists,
  WEBHOOK_ENDPOINT_DISABLED: Code.FailedPrecondition,
  WEBHOOK_DELIVERY_NOT_FOUND: Code.NotFound,
  TOO_MANY_WEBHOOK_ENDPOINTS: Code.FailedPrecondition,
  KEY_PAGES_UNAVAILABLE: Code.FailedPrecondition,
  CREDENTIAL_INVALID: Code.Unauthenticated,
  SCOPE_NOT_ALLOWED: Code.PermissionDenied,
  CLAIM_NOT_ALLOWED: Code.PermissionDenied,
  AUDIENCE_NOT_ALLOWED: Code.PermissionDenied,
  CALLER_UNAUTHENTICATED: Code.Unauthenticated,
  CALLER_NOT_PERMITTED: Code.PermissionDenied,
  AUTHORITY_UNAVAILABLE: Code.Unavailable,
  DATABASE_UNAVAILABLE: Code.Unavailable,
  CHANGE_UNCONFIRMED: Code.Unavailable,
  OVERLOADED: Code.Unavailable,
  RATE_LIMITED: Code.ResourceExhausted,
  INTERNAL: Code.Internal,
};

export type ErrorDetail = { readonly desc: DescMessage; readonly value: MessageInitShape<DescMessage> };

/** Returns any error as a `ConnectError`: ours by the table, a `ConnectError` unchanged, and every other as INTERNAL. */
export function toConnectError(error: unknown, details: readonly ErrorDetail[] = []): ConnectError {
  if (error instanceof ConnectError) return error;
  if (!(error instanceof KeyholdError))
    return convert(new KeyholdError("INTERNAL", "internal error", { cause: error }));
  return details.length === 0 ? convertPlain(error) : convert(error, details);
}

/** Errors that are thrown under load are memoizable, and converted once. */
const convertPlain = memoize((error: KeyholdError) => convert(error));

/** Hides the cause from the client, and keeps it for the log. */
function convert(error: KeyholdError, details: readonly ErrorDetail[] = []): ConnectError {
  const connect = new ConnectError(error.message, CODES[error.code], headersOf(error), [
    { desc: ErrorInfoSchema, value: { reason: error.code, domain: ERROR_DOMAIN, metadata: { ...error.metadata } } },
    ...badRequest(error),
    ...(isTemporary(error.code) ? [retryInfo(error)] : []),
    ...(error.quota === undefined ? [] : [{ desc: QuotaFailureSchema, value: { violations: [error.quota] } }]),
    ...details,
  ]);
  connect.cause = error.cause;
  return connect;
}

function badRequest({ violations }: KeyholdError): ErrorDetail[] {
  return violations.length === 0 ? [] : [{ desc: BadRequestSchema, value: { fieldViolations: [...violations] } }];
}

/** Returns whether a retry may succeed. */
function isTemporary(code: ErrorCode): boolean {
  return CODES[code] === Code.Unavailable || code === "RATE_LIMITED";
}

/** The same as `Retry-After`, in the form of gRPC. */
function retryInfo({ retryAfter }: KeyholdError): ErrorDetail {
  return { desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(retryAfter) } } };
}

/** `WWW-Authenticate` in every 401 (RFC 9110 §11.6.1, §15.5.2), and `Retry-After` (§10.2.3). */
function headersOf({ code, retryAfter, isTokenInvalid }: KeyholdError): Record<string, string> | undefined {
  // A request without a credential gets no error code (RFC 6750 §3.1).
  if (CODES[code] === Code.Unauthenticated)
    return { "www-authenticate": `Bearer realm="keyhold"${isTokenInvalid ? ', error="invalid_token"' : ""}` };
  if (isTemporary(code)) return { "retry-after": String(retryAfter) };
  return undefined;
}
