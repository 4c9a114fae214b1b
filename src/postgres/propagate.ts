import type { Fragment, Sql } from "postgres";
import { unconfirmed } from "../cluster/barriers.ts";
import { OtherServerError, type SendBarrier } from "../cluster/change-feed.ts";
import type { Propagating, Propagation } from "../cluster/propagation.ts";
import type { ServerId } from "../cluster/server-id.ts";
import { KeyholdError } from "../domain/errors.ts";
import { firstRow } from "./first-row.ts";
import { sendBarrier } from "./leases.ts";
import type { Database } from "./pool.ts";
import type { WithServer } from "./server-position.ts";

/** A change that was committed. */
export interface Committed<T> {
  readonly result: T;
  /** Resolves when no node answers by an earlier state. Rejects with `CHANGE_UNCONFIRMED`; may be ignored. */
  readonly propagated: Promise<void>;
}

/** Must be called with each server that ran a statement of a change, or on which its effect was read. */
export type RanOn = (server: ServerId) => void;

/** Makes a change by statements over one connection. */
export type ChangeWork<T> = (sql: Sql, ranOn: RanOn) => PromiseLike<T>;

/** Runs a statement of `withServer` that changes at most one row, and returns it; its columns are null if there is none. */
export async function changeRow<R>(sql: Sql, statement: Fragment, ranOn: RanOn): Promise<R> {
  const row = firstRow(await sql<WithServer<R & object>[]>`${statement}`);
  ranOn(row.server);
  return row;
}

export interface ChangeOptions<T> {
  /** The name of its span in traces. */
  readonly statement?: string;
  /** Whether no node can have looked up what is changed, as for new keys. Then no barrier is needed, unless nodes may read another server. */
  readonly isUnknown?: boolean;
  /** Whether the work has changed anything. If not, the barrier waits until the synchronous standby has the state that the work saw instead. */
  readonly isMade: (result: T) => boolean;
}

/**
 * Makes a change and sends the barrier after it over the same connection, so that the leases that it returns are those of the server that
 * has the change.
 *
 * @throws what the work does; the change may be made or not.
 */
export async function commit<T>(
  database: Database,
  propagation: Propagation,
  work: ChangeWork<T>,
  { statement, isMade, isUnknown = false }: ChangeOptions<T>,
): Promise<Committed<T>> {
  let made: { readonly result: T } | undefined;
  try {
    const [result, begun] = await database.run(async (sql, checkout) => {
      const servers = new Set<ServerId>();
      const result = await work(sql, (server) => servers.add(server));
      made = { result };
      const send: SendBarrier = async (mark) => {
        const answer = await sendBarrier(sql, mark, !isMade(result));
        for (const server of servers) requireSame(server, answer.position.server);
        return answer;
      };
      const isKnown = isUnknown && propagation.isAcknowledgedByAll(servers);
      const begun = isKnown ? null : await propagation.begin(send);
      if (checkout.isReplicationCancelled) throw notReplicated();
      return [result, begun] as const;
    }, statement);
    if (begun === null) return { result, propagated: Promise.resolve() };
    return { result, propagated: handled(propagation.confirm(begun, () => repeat(database, propagation))) };
  } catch (error) {
    if (made === undefined) throw error;
    return { result: made.result, propagated: handled(Promise.reject(asUnconfirmed(error))) };
  }
}

/** A transaction pooler may run the barrier on another server than the change, where nodes do not receive the notification of the change. */
function requireSame(server: ServerId, ofBarrier: ServerId): void {
  if (server !== ofBarrier) throw new OtherServerError(server, ofBarrier);
}

function repeat(database: Database, propagation: Propagation): Promise<Propagating> {
  return database.run(async (sql, checkout) => {
    const begun = await propagation.begin((mark) => sendBarrier(sql, mark, true));
    if (checkout.isReplicationCancelled) throw notReplicated();
    return begun;
  }, "changes.confirm");
}

/** Keeps a rejection that nobody awaits from ending the process. */
function handled(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}

function asUnconfirmed(error: unknown): KeyholdError {
  return error instanceof KeyholdError && error.code === "CHANGE_UNCONFIRMED" ? error : unconfirmed(error);
}

function notReplicated(): KeyholdError {
  return new KeyholdError(
    "CHANGE_UNCONFIRMED",
    "the change is made, but the synchronous standby of the database has not confirmed it: repeat the call",
  );
}
