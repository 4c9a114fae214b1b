import postgres, { type Notice } from "postgres";
import { fieldError, KeyholdError } from "../../domain/errors.ts";

/**
 * Codes that describe the state of the database and no bug of ours. By Node, the driver and `primary.ts`: the connection could not be opened or
 * was lost. By SQLSTATE class and code (PostgreSQL, appendix A): no connection (08), transaction rollback (40), insufficient resources (53),
 * shutting down or starting (57P01 to 57P03), read-only (25006), in recovery (55000, raised by functions that a standby does not support).
 */
const UNREACHABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOENT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPIPE|ETIMEDOUT|CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED|DESTROYED)|NO_PRIMARY|08...|40...|53...|57P0[123]|25006|55000)$/;

/**
 * Authentication failed: wrong password or role (28P01, 28000) or database name (3D000). The operator must correct it; calls may be
 * retried afterwards.
 */
const LOGIN_REJECTED: ReadonlySet<string> = new Set(["28P01", "28000", "3D000"]);

/** Raised by statement_timeout. */
export const QUERY_CANCELED = "57014";

const FOREIGN_KEY_VIOLATION = "23503";

/** Returns the SQLSTATE of an error, or its code in Node, the driver or `primary.ts`; empty if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Returns a page of a list. Rejects with `LIST_TOO_SLOW` naming the field if the database needs too long for it. */
export async function pageInTime<T>(page: Promise<T>, field: string, description: string): Promise<T> {
  try {
    return await page;
  } catch (error) {
    if (codeOf(error) !== QUERY_CANCELED) throw error;
    throw fieldError("LIST_TOO_SLOW", field, description);
  }
}

/** The session has a setting under which results have another meaning, or none (`session-settings.ts`). */
export class ForeignSettingError extends Error {}

/** undefined_table, and invalid_text_representation, which `serverId` raises. */
const FOREIGN_SETTINGS: ReadonlyMap<string, string> = new Map([
  ["42P01", "a Keyhold table is not visible; check search_path"],
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
  const code = codeOf(error);
  if (code === QUERY_CANCELED) return tooLate(error);
  const foreign = FOREIGN_SETTINGS.get(code);
  if (foreign !== undefined)
    return new ForeignSettingError(`the session has an unexpected setting: ${foreign}`, { cause: error });
  if (LOGIN_REJECTED.has(code)) return unavailable("the database rejected the login", error);
  return UNREACHABLE.test(code) ? unavailable("the database is unreachable", error) : error;
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
  if (!(error instanceof postgres.PostgresError)) return error;
  if (error.code === CREATOR_INVALID)
    return new KeyholdError("CALLER_UNAUTHENTICATED", `the admin token is not valid: ${error.message}`, {
      cause: error,
    });
  if (error.code !== OUTDATED) return error;
  const servers = String(error.detail);
  const message = `servers of an earlier release are connected to the database and would accept the key; upgrade or stop ${servers}`;
  return new KeyholdError("SERVERS_OUTDATED", message, { metadata: { servers } });
}

/** Returns whether a row refers to one that does not exist, or one that is deleted is referred to. */
export function isForeignKeyViolation(error: unknown): boolean {
  return codeOf(error) === FOREIGN_KEY_VIOLATION;
}

/**
 * Returns whether the database rolled the transaction back because of a concurrent one (class 40): nothing was changed, and it may be
 * retried.
 */
export function wasRolledBack(error: unknown): boolean {
  return codeOf(error instanceof KeyholdError ? error.cause : error).startsWith("40");
}

/**
 * Returns whether a notice says that a commit's wait for its synchronous standby was cancelled, for example by `statement_timeout`. The
 * change is committed on this server, and a failover may lose it. PostgreSQL reports it as a WARNING of class 01000 with a translated
 * text, so it is recognized by its routine.
 */
export function isReplicationCancelled({ code, routine }: Partial<Notice>): boolean {
  return code === "01000" && (routine === undefined || routine === "SyncRepWaitForLSN");
}
