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
 * Classes and codes of SQLSTATE (PostgreSQL, appendix A) that are the database's condition, not ours: no connection (08),
 * rolled back for the sake of another (40), out of resources (53), shutting down or starting (57P01 to 57P03), read-only (25006).
 */
const SQLSTATES = /^(08...|40...|53...|57P0[123]|25006)$/;

/** By statement_timeout. */
const CANCELED = "57014";

const TOO_LATE = "the database did not answer in time";

/** Longer than the database lets a statement run: after it no answer will come, as when its machine or the road to it is gone. */
const ANSWER_TIMEOUT = 15_000;

/**
 * Runs statements; a database that cannot be reached, or cannot answer now, is `DATABASE_UNAVAILABLE`. `timeout` in
 * milliseconds, null for none; what is not done by then may be done or not.
 */
export async function query<T>(run: () => PromiseLike<T>, timeout: number | null = ANSWER_TIMEOUT): Promise<T> {
  try {
    return await (timeout === null ? run() : within(timeout, run()));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === CANCELED) throw new KeyholdError("DATABASE_UNAVAILABLE", TOO_LATE, { cause: error });
    if (typeof code !== "string" || !(DRIVER_CODES.has(code) || SQLSTATES.test(code))) throw error;
    throw new KeyholdError("DATABASE_UNAVAILABLE", "the database cannot be reached", { cause: error });
  }
}

async function within<T>(timeout: number, answer: PromiseLike<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new KeyholdError("DATABASE_UNAVAILABLE", TOO_LATE)), timeout);
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer));
}
