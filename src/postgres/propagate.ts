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
  /** Resolves when no node answers by anything from before the change. Rejects with `CHANGE_UNCONFIRMED`; need not be waited for. */
  readonly confirmed: Promise<void>;
}

/** To be called with each server that has run a statement of a change, or has what a statement changed. */
export type RanOn = (server: ServerId) => void;

/** Makes a change by statements over one connection. */
export type ChangeWork<T> = (sql: Sql, ranOn: RanOn) => PromiseLike<T>;

/** Runs a statement of `withServer` that changes one row at the most, and returns that row; its columns are null where there is none. */
export async function changeRow<R>(sql: Sql, statement: Fragment, ranOn: RanOn): Promise<R> {
  const row = firstRow(await sql<WithServer<R & object>[]>`${statement}`);
  ranOn(row.server);
  return row;
}

export interface ChangeOptions<T> {
  /** What traces call it. */
  readonly statement?: string;
  /** Whether no node can have looked for what is changed, as for new keys. Then it needs no barrier, unless nodes may read another server. */
  readonly isUnknown?: boolean;
  /** Whether the work has changed anything. If not, what it saw instead may not be on the synchronous standby yet: the barrier waits for that. */
  readonly isMade: (result: T) => boolean;
}

/**
 * Makes a change, and sends the barrier behind it over the same connection, so that both are of one server: the leases that it is answered with
 * are those of the server that has the change.
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
    if (begun === null) return { result, confirmed: Promise.resolve() };
    return { result, confirmed: handled(propagation.confirm(begun, () => repeat(database, propagation))) };
  } catch (error) {
    if (made === undefined) throw error;
    return { result: made.result, confirmed: handled(Promise.reject(asUnconfirmed(error))) };
  }
}

/** A pooler of transactions may run the barrier on another server than the change: those who listen there hear nothing of it. */
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

/** Whoever does not wait for it does not end the process by it. */
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
