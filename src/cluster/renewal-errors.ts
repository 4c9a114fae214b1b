import { KeyholdError } from "../domain/errors.ts";
import { backoffDelay } from "../lib/backoff.ts";
import { OtherServerError } from "./change-feed.ts";
import { DatabaseRejectedError } from "./history.ts";

export class LateError extends Error {}

export class NotReplicatedError extends Error {}

export class NoEchoError extends KeyholdError {}

export class LeaseGoneError extends Error {}

export function otherDatabase(): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    "KEYHOLD_DATABASE_LISTEN_URL and KEYHOLD_DATABASE_URL point to different databases",
  );
}

/**
 * Returns whether another renewal in the same session may succeed: the connection to the database or its standby failed, not the session.
 */
export function isTransient(error: Error): boolean {
  if (error instanceof NoEchoError || error instanceof OtherServerError) return false;
  return error instanceof NotReplicatedError || error instanceof KeyholdError;
}

/** Reconnects quickly after a restart of the database, which rejects connections meanwhile. */
const QUICK = { first: 20, max: 200 };

/**
 * A database that does not answer, as while a synchronous standby is unreachable, may keep a backend busy for each attempt. One that lacks
 * changes waits for an operator.
 */
const SLOW = { first: 250, max: 2_000 };

/** Returns how many milliseconds to wait before the next attempt, after this number of consecutive failures. */
export function delayAfter(error: Error, failures: number): number {
  const isSlow = [LateError, NotReplicatedError, DatabaseRejectedError].some((type) => error instanceof type);
  return backoffDelay(failures, isSlow ? SLOW : QUICK);
}

/** Returns the error of a node that has no lease. */
export function noLease(cause?: Error): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable", { cause });
}
