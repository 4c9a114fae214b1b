/**
 * The one error that leaves the domain. It knows no protocol: `code` is a reason from a closed set, and the table in
 * `api/errors.ts` says what each is on the wire. An ordinary "no" (revoked, expired, unknown) is a verdict, not an error.
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

/** What is wrong with one field of a request; `field` is its path in snake_case, such as `requests[3].raw_key`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface ErrorOptions {
  readonly violations?: readonly FieldViolation[];
  /** Facts for the caller's program, such as the scope that was missing. Never a secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** For the log alone; no caller sees it. */
  readonly cause?: unknown;
  /** Of keys that were changed in spite of the error: for the log alone. */
  readonly changedKeyIds?: readonly string[];
}

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

/** Bad input that names its field (house rule 7). */
export function invalidArgument(field: string, description: string): KeyholdError {
  return new KeyholdError("INVALID_ARGUMENT", `${field}: ${description}`, { violations: [{ field, description }] });
}
