/**
 * The reasons of a `KeyholdError`. The set is closed and independent of any protocol: `api/errors.ts` maps each to its wire code.
 * A rejected credential (revoked, expired, unknown) is a verdict, not an error.
 */
export type ErrorCode =
  | "INVALID_ARGUMENT"
  | "API_KEY_NOT_FOUND"
  | "RAW_KEY_ALREADY_EXISTS"
  | "LOOKUP_PREFIX_ALREADY_EXISTS"
  | "HMAC_KEY_NOT_FOUND"
  | "HMAC_KEY_ALREADY_EXISTS"
  | "HMAC_KEY_IN_USE"
  | "TOO_MANY_HMAC_KEYS"
  | "TOO_MANY_HASH_SCHEMES"
  | "TOO_MANY_PREFIX_LENGTHS"
  | "REQUEST_ID_REUSED"
  | "API_KEY_ALREADY_REVOKED"
  | "API_KEY_REVOKED"
  | "API_KEY_EXPIRED"
  | "TOO_MANY_VALID_SECRETS"
  | "SERVERS_OUTDATED"
  | "CONCURRENT_CHANGE"
  | "EXPECTED_COUNT_DIFFERS"
  | "LIST_TOO_SLOW"
  | "AUDIT_EVENT_NOT_FOUND"
  | "QUOTA_NOT_FOUND"
  | "ACTOR_NOT_FOUND"
  | "AUDIT_SEQ_OUT_OF_RANGE"
  | "WATCH_TOO_SLOW"
  | "WEBHOOK_ENDPOINT_NOT_FOUND"
  | "WEBHOOK_ENDPOINT_ALREADY_EXISTS"
  | "WEBHOOK_ENDPOINT_DISABLED"
  | "WEBHOOK_DELIVERY_NOT_FOUND"
  | "TOO_MANY_WEBHOOK_ENDPOINTS"
  | "KEY_PAGES_UNAVAILABLE"
  | "CREDENTIAL_INVALID"
  | "SCOPE_NOT_ALLOWED"
  | "CLAIM_NOT_ALLOWED"
  | "AUDIENCE_NOT_ALLOWED"
  | "CALLER_UNAUTHENTICATED"
  | "CALLER_NOT_PERMITTED"
  | "AUTHORITY_UNAVAILABLE"
  | "DATABASE_UNAVAILABLE"
  | "CHANGE_UNCONFIRMED"
  | "OVERLOADED"
  | "RATE_LIMITED"
  | "INTERNAL";

/** Why a field is invalid, for programs (AIP-193). The set is closed; docs/api.md describes each. */
export const INVALID_REASONS = [
  "FIELD_REQUIRED",
  "STRING_TOO_LONG",
  "STRING_TOO_SHORT",
  "TOO_MANY_ITEMS",
  "TOO_FEW_ITEMS",
  "TOO_LARGE",
  "OUT_OF_RANGE",
  "INVALID_FORMAT",
  "INVALID_CHARACTER",
  "WRONG_TYPE",
  "UNKNOWN_FIELD",
  "UNKNOWN_ENUM_VALUE",
  "DUPLICATE_FIELD",
  "IMMUTABLE_FIELD",
  "FIELD_NOT_UPDATABLE",
  "VALUE_NOT_ALLOWED",
] as const;

export type InvalidReason = (typeof INVALID_REASONS)[number];

/** A problem with one field of a request; `field` is its path in snake_case, such as `requests[3].raw_key`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
  /** For other errors than `INVALID_ARGUMENT`, the code of the error. */
  readonly reason: InvalidReason | ErrorCode;
}

/** A limit that a call exceeds: what it is counted by, and for people, how much it admits. */
export interface ExceededQuota {
  readonly subject: string;
  readonly description: string;
}

export interface ErrorOptions {
  readonly violations?: readonly FieldViolation[];
  /** Machine-readable details for the caller, such as the missing scope. Never contains a secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Seconds after which a retry may succeed; default: 1, if the error is temporary. */
  readonly retryAfter?: number;
  /** The limit that `RATE_LIMITED` is about. */
  readonly quota?: ExceededQuota;
  /** Whether the caller presented a credential that is not valid, instead of none. */
  readonly isTokenInvalid?: boolean;
  /** Logged; never sent to a caller. */
  readonly cause?: unknown;
  /** Keys that changed despite the error. Logged; never sent to a caller. */
  readonly changedKeyIds?: readonly string[];
}

/** The only error class that the domain throws. */
export class KeyholdError extends Error {
  override readonly name = "KeyholdError";
  readonly code: ErrorCode;
  readonly violations: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly changedKeyIds: readonly string[];
  readonly retryAfter: number;
  readonly quota: ExceededQuota | undefined;
  readonly isTokenInvalid: boolean;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.violations = options.violations ?? [];
    this.metadata = options.metadata ?? {};
    this.changedKeyIds = options.changedKeyIds ?? [];
    this.retryAfter = options.retryAfter ?? 1;
    this.quota = options.quota;
    this.isTokenInvalid = options.isTokenInvalid ?? false;
  }
}

/** Returns an error with a violation of one field. */
export function fieldError(
  code: Exclude<ErrorCode, "INVALID_ARGUMENT">,
  field: string,
  description: string,
  metadata: Readonly<Record<string, string>> = {},
): KeyholdError {
  const violations = [{ field, description, reason: code }];
  return new KeyholdError(code, `${field}: ${description}`, { violations, metadata });
}

export function invalidArgument(
  field: string,
  description: string,
  reason: InvalidReason = "INVALID_FORMAT",
): KeyholdError {
  return invalidArguments([{ field, description, reason }]);
}

/** Violations reported at most. In gRPC they are in the trailers, of which some clients accept only 8 KiB. */
export const MAX_VIOLATIONS = 20;

/** Violations in the message of an error at most. How many others there are is not always known. */
const MAX_DESCRIBED = 5;

export function invalidArguments(violations: readonly FieldViolation[]): KeyholdError {
  const described = violations.slice(0, MAX_DESCRIBED).map(({ field, description }) => `${field}: ${description}`);
  const others = violations.length > described.length ? ["and more"] : [];
  const message = [...described, ...others].join("; ");
  return new KeyholdError("INVALID_ARGUMENT", message, { violations: violations.slice(0, MAX_VIOLATIONS) });
}

type Results<C extends readonly (() => unknown)[]> = { [I in keyof C]: ReturnType<C[I]> };

/** Returns the results of all checks, or throws one `INVALID_ARGUMENT` with the violations of all. Any other error is thrown instead. */
export function checkAll<C extends readonly (() => unknown)[]>(...checks: C): Results<C> {
  const results = checks.map(attempt);
  const errors = results.filter((result) => result instanceof KeyholdError);
  const other = errors.find(({ code }) => code !== "INVALID_ARGUMENT");
  if (other !== undefined) throw other;
  if (errors.length > 0) throw invalidArguments(errors.flatMap(({ violations }) => violations));
  return results as Results<C>;
}

/** Returns what a function returns, or the `KeyholdError` that it throws. */
export function attempt<T>(run: () => T): T | KeyholdError {
  try {
    return run();
  } catch (error) {
    if (error instanceof KeyholdError) return error;
    throw error;
  }
}
