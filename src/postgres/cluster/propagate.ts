import type { Sql } from "postgres";
import { unconfirmed } from "../../cluster/barriers.ts";
import { type BarrierAnswer, OtherServerError } from "../../cluster/change-feed.ts";
import type { Propagating, Propagation } from "../../cluster/propagation.ts";
import type { ServerId } from "../../cluster/server-id.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { changeError } from "../connection/errors.ts";
import type { Checkout, Database } from "../connection/pool.ts";
import { sendBarrier } from "./leases.ts";

export interface Committed<T> {
  readonly result: T;
  /** Resolves when no node answers by an earlier state. Rejects with `CHANGE_UNCONFIRMED`; may be ignored. */
  readonly propagated: Promise<void>;
}

/** Calls `committed` with the result as soon as that is committed, and returns what the barrier after it began; null without a barrier. */
type Make<T> = (sql: Sql, committed: (result: T) => void) => Promise<Propagating | null>;

/**
 * Makes a change over a connection of the database, and propagates it to all nodes.
 *
 * @throws what `make` does before it has called `committed`; the change may be made or not.
 */
export async function propagate<T>(
  database: Database,
  propagation: Propagation,
  make: Make<T>,
  statement?: string,
): Promise<Committed<T>> {
  let result!: T;
  let isCommitted = false;
  let propagated: Promise<void>;
  const committed = (made: T) => {
    result = made;
    isCommitted = true;
  };
  try {
    const begun = await database.run(async (sql, checkout) => {
      const begun = await make(sql, committed);
      requireReplicated(checkout);
      return begun;
    }, statement);
    propagated = begun === null ? Promise.resolve() : propagation.confirm(begun, () => repeat(database, propagation));
  } catch (error) {
    if (!isCommitted) throw changeError(error);
    propagated = Promise.reject(asUnconfirmed(error));
  }
  return { result, propagated: handled(propagated) };
}

function repeat(database: Database, propagation: Propagation): Promise<Propagating> {
  return database.run(async (sql, checkout) => {
    const begun = await propagation.begin((mark) => sendBarrier(sql, mark, true));
    requireReplicated(checkout);
    return begun;
  }, "changes.confirm");
}

/**
 * Returns the answer of a barrier if the server that sent it also ran the statements of the change. A transaction pooler may run the barrier
 * on another one, where nodes do not receive the notification of the change.
 *
 * @throws OtherServerError
 */
export function fromSameServer(answer: BarrierAnswer, servers: Iterable<ServerId>): BarrierAnswer {
  const { server } = answer.position;
  for (const other of servers) if (other !== server) throw new OtherServerError(other, server);
  return answer;
}

/** Keeps a rejection that nobody awaits from ending the process. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function asUnconfirmed(error: unknown): KeyholdError {
  return error instanceof KeyholdError && error.code === "CHANGE_UNCONFIRMED" ? error : unconfirmed(error);
}

function requireReplicated({ isReplicationCancelled }: Checkout): void {
  if (!isReplicationCancelled) return;
  throw new KeyholdError(
    "CHANGE_UNCONFIRMED",
    "the change is committed, but the synchronous standbys have not confirmed it; retry, with the same request_id if one was set",
  );
}
