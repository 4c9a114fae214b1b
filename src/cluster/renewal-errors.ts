import { KeyholdError } from "../domain/errors.ts";
import { OtherServerError } from "./change-feed.ts";
import { DatabaseRefusedError } from "./history.ts";

export class LateError extends Error {
  constructor() {
    super("the database did not respond in time");
  }
}

export class NotReplicatedError extends Error {
  constructor() {
    super("the synchronous standby of the database did not confirm a renewal of the lease");
  }
}

export class NoEchoError extends KeyholdError {
  constructor() {
    super(
      "DATABASE_UNAVAILABLE",
      "no notifications arrive from the database: KEYHOLD_DATABASE_LISTEN_URL must lead to the database itself, not to a transaction pooler",
    );
  }
}

export class OtherDatabaseError extends KeyholdError {
  constructor() {
    super("DATABASE_UNAVAILABLE", "KEYHOLD_DATABASE_LISTEN_URL and KEYHOLD_DATABASE_URL lead to different databases");
  }
}

/**
 * Returns whether another renewal in the same session may succeed: the connection to the database or its standby failed, not the session.
 */
export function isTransient(error: Error): boolean {
  if (error instanceof NoEchoError || error instanceof OtherServerError) return false;
  return error instanceof NotReplicatedError || error instanceof KeyholdError;
}

/** Returns whether the next attempt is likely to take as long, or needs an operator first. */
export function isSilent(error: Error): boolean {
  return error instanceof LateError || error instanceof NotReplicatedError || error instanceof DatabaseRefusedError;
}

/** Returns the error of a node that has no lease. */
export function noLease(cause?: Error): KeyholdError {
  return new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable", { cause });
}
