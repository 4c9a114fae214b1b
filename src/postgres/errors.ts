import { KeyholdError } from "../domain/errors.ts";

/** What the driver, or `primary.ts`, says when there is no connection, or no longer. */
const DRIVER_CODES: ReadonlySet<string> = new Set([
  "CONNECT_TIMEOUT",
  "NO_PRIMARY",
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "ECONNREFUSED",
  "ECONNRESET",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EPIPE",
  "ETIMEDOUT",
]);

/**
 * Classes and codes of SQLSTATE (PostgreSQL, appendix A) that are the database's condition, not ours: no connection (08),
 * rolled back for the sake of another (40), out of resources (53), shutting down or starting (57P01 to 57P03), read-only (25006), or in
 * recovery (55000, of functions that a standby does not have).
 */
const SQLSTATES = /^(08...|40...|53...|57P0[123]|25006|55000)$/;

/**
 * It answers, but does not let us in: the password or the role (28P01, 28000), or the database's name (3D000). That is for the
 * operator to change, and then all is well again: no fault of the call, which may be repeated.
 */
const NOT_LET_IN: ReadonlySet<string> = new Set(["28P01", "28000", "3D000"]);

/** By statement_timeout. */
const CANCELED = "57014";

/** A failure as callers are to see it: a database that cannot be reached or cannot answer now is `DATABASE_UNAVAILABLE`. */
export function databaseError(error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === CANCELED) return tooLate(error);
  if (typeof code !== "string") return error;
  if (NOT_LET_IN.has(code)) return unavailable("the database does not let this service in", error);
  return DRIVER_CODES.has(code) || SQLSTATES.test(code) ? unavailable("the database cannot be reached", error) : error;
}

/** Without a connection, for this reason where it is known. */
export function cutOff(cause?: Error): KeyholdError {
  return unavailable("the database cannot be reached", cause);
}

export function tooLate(cause?: unknown): KeyholdError {
  return unavailable("the database did not answer in time", cause);
}

function unavailable(message: string, cause: unknown): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", message, { cause });
}

/** Whether the database undid the work for the sake of another's (class 40): nothing of it is done, and it may be tried again. */
export function wasRolledBack(error: unknown): boolean {
  const cause = error instanceof KeyholdError ? error.cause : error;
  return cause instanceof Error && "code" in cause && /^40...$/.test(String(cause.code));
}
