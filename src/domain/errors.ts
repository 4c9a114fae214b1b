/**
 * The reasons of a `KeyholdError`. The set is closed and independent of any protocol: `api/errors.ts` maps each to its wire code.
 * A rejected credential (revoked, expired, unknown) is a verdict, not an error.
 */
export type ErrorCode =
  | "INVALID_ARGUMENT"
  | "API_KEY_NOT_FOUND"
  | "RAW_KEY_ALREADY_EXISTS"
  | "REQUEST_ID_REUSED"
  | "API_KEY_ALREADY_REVOKED"
  | "API_KEY_REVOKED"
  | "API_KEY_EXPIRED"
  | "TOO_MANY_VALID_SECRETS"
  | "CONCURRENT_CHANGE"
  | "CREDENTIAL_INVALID"
  | "SCOPE_NOT_ALLOWED"
  | "CLAIM_NOT_ALLOWED"
  | "CALLER_UNAUTHENTICATED"
  | "CALLER_NOT_PERMITTED"
  | "AUTHORITY_UNAVAILABLE"
  | "DATABASE_UNAVAILABLE"
  | "CHANGE_UNCONFIRMED"
  | "OVERLOADED"
  | "RATE_LIMITED"
  | "INTERNAL";

/** A problem with one field of a request; `field` is its path in snake_case, such as `requests[3].raw_key`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface ErrorOptions {
  readonly violations?: readonly FieldViolation[];
  /** Machine-readable details for the caller, such as the missing scope. Never contains a secret. */
  readonly metadata?: Readonly<Record<string, string>>;
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

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.violations = options.violations ?? [];
    this.metadata = options.metadata ?? {};
    this.changedKeyIds = options.changedKeyIds ?? [];
  }
}

/** Returns an error with a violation of one field. */
export function fieldError(
  code: ErrorCode,
  field: string,
  description: string,
  metadata: Readonly<Record<string, string>> = {},
): KeyholdError {
  return new KeyholdError(code, `${field}: ${description}`, { violations: [{ field, description }], metadata });
}

export function invalidArgument(field: string, description: string): KeyholdError {
  return fieldError("INVALID_ARGUMENT", field, description);
}
