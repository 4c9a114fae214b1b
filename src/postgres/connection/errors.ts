import postgres, { type Notice } from "postgres";
import { KeyholdError } from "../../domain/errors.ts";

/** Error codes of the driver and of `primary.ts` for a connection that could not be opened or was lost. */
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
 * SQLSTATE classes and codes (PostgreSQL, appendix A) that describe the state of the database and no bug of ours: no connection (08),
 * transaction rollback (40), insufficient resources (53), shutting down or starting (57P01 to 57P03), read-only (25006), in recovery
 * (55000, raised by functions that a standby does not support).
 */
const SQLSTATES = /^(08...|40...|53...|57P0[123]|25006|55000)$/;

/**
 * Authentication failed: wrong password or role (28P01, 28000) or database name (3D000). The operator must correct it; calls may be
 * retried afterwards.
 */
const LOGIN_REJECTED: ReadonlySet<string> = new Set(["28P01", "28000", "3D000"]);

/** Raised by statement_timeout. */
const CANCELED = "57014";

/** The session has a setting under which results have another meaning, or none (`session-settings.ts`). */
export class ForeignSettingError extends Error {}

/** undefined_table, and invalid_text_representation, which `serverId` raises. */
const FOREIGN_SETTINGS: ReadonlyMap<unknown, string> = new Map([
  ["42P01", "a table of Keyhold is not visible; check search_path"],
  [
    "22P02",
    "triggers do not run, or the tables belong to another schema; check session_replication_role and search_path",
  ],
]);

/**
 * Returns the error for callers: `DATABASE_UNAVAILABLE` if the database is unreachable or cannot answer now. A `ForeignSettingError` is
 * internal.
 */
export function databaseError(error: unknown): unknown {
  if (error instanceof postgres.PostgresError) hideValues(error);
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (isCancelled(error)) return tooLate(error);
  const foreign = FOREIGN_SETTINGS.get(code);
  if (foreign !== undefined)
    return new ForeignSettingError(`the session has an unexpected setting: ${foreign}`, { cause: error });
  if (typeof code !== "string") return error;
  if (LOGIN_REJECTED.has(code)) return unavailable("the database rejected the login", error);
  return DRIVER_CODES.has(code) || SQLSTATES.test(code) ? unavailable("the database is unreachable", error) : error;
}

/** What a log may say of an error of the database (PostgreSQL docs, 54.8). The other fields may contain values of the row. */
const LOGGED_FIELDS: ReadonlySet<string> = new Set([
  "name",
  "severity",
  "code",
  "schema_name",
  "table_name",
  "constraint_name",
]);

/** Hides the other fields from loggers, which write what is enumerable. */
function hideValues(error: postgres.PostgresError): void {
  for (const field of Object.keys(error))
    if (!LOGGED_FIELDS.has(field)) Object.defineProperty(error, field, { enumerable: false });
}

/** The error for a missing connection, with its cause if known. */
export function cutOff(cause?: Error): KeyholdError {
  return unavailable("the database is unreachable", cause);
}

export function tooLate(cause?: unknown): KeyholdError {
  return unavailable("the database did not respond in time", cause);
}

function unavailable(message: string, cause: unknown): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", message, { cause });
}

/** Raised by a trigger of migration 0017 when a key gets a control that a node does not apply. */
const OUTDATED = "KH001";

/** Raised by a trigger of migration 0022, with the reason as its message. */
const CREATOR_INVALID = "KH003";

/** Returns the error of a change for callers: `SERVERS_OUTDATED` or `CALLER_UNAUTHENTICATED` if a trigger has raised it. */
export function changeError(error: unknown): unknown {
  if (!(error instanceof Error && "code" in error)) return error;
  if (error.code === CREATOR_INVALID)
    return new KeyholdError("CALLER_UNAUTHENTICATED", `the admin token is not valid: ${error.message}`, {
      cause: error,
    });
  if (error.code !== OUTDATED || !("detail" in error)) return error;
  const servers = String(error.detail);
  const message = `servers of an earlier release are connected to the database and would accept the key; upgrade or stop ${servers}`;
  return new KeyholdError("SERVERS_OUTDATED", message, { metadata: { servers } });
}

/** Returns whether the database has cancelled the statement, as after `statement_timeout`. */
export function isCancelled(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === CANCELED;
}

/** SQLSTATE foreign_key_violation (PostgreSQL, appendix A). */
const FOREIGN_KEY_VIOLATION = "23503";

/** Returns whether a row refers to one that does not exist, or one that is deleted is referred to. */
export function isForeignKeyViolation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === FOREIGN_KEY_VIOLATION;
}

/**
 * Returns whether the database rolled the transaction back because of a concurrent one (class 40): nothing was changed, and it may be
 * retried.
 */
export function wasRolledBack(error: unknown): boolean {
  const cause = error instanceof KeyholdError ? error.cause : error;
  return cause instanceof Error && "code" in cause && /^40...$/.test(String(cause.code));
}

/**
 * Returns whether a notice says that a commit's wait for its synchronous standby was cancelled, for example by `statement_timeout`. The
 * change is committed on this server, and a failover may lose it. PostgreSQL reports it as a WARNING of class 01000 with a translated
 * text, so it is recognized by its routine.
 */
export function isReplicationCancelled({ code, routine }: Partial<Notice>): boolean {
  return code === "01000" && (routine === undefined || routine === "SyncRepWaitForLSN");
}
