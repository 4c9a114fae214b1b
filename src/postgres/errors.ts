import { KeyholdError } from "../errors.ts";

/** What the driver says when there is no connection, or no longer. */
const DRIVER_CODES: ReadonlySet<string> = new Set([
  "CONNECT_TIMEOUT",
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
 * Classes and codes of SQLSTATE (PostgreSQL, appendix A) that are the database's condition, not ours: no connection (08), out
 * of resources (53), canceled by statement_timeout (57014), shutting down or starting (57P01 to 57P03), read-only (25006).
 */
const SQLSTATES = /^(08...|53...|57014|57P0[123]|25006)$/;

/** Runs a statement; a database that cannot be reached, or cannot answer now, is `DATABASE_UNAVAILABLE`. */
export async function query<T>(run: () => PromiseLike<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw isUnavailable(error)
      ? new KeyholdError("DATABASE_UNAVAILABLE", "the database cannot be reached", { cause: error })
      : error;
  }
}

function isUnavailable(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && (DRIVER_CODES.has(code) || SQLSTATES.test(code));
}
