import type { Fragment, PendingQuery, Sql } from "postgres";
import { unconfirmed } from "../../cluster/barriers.ts";
import { OtherServerError, type SendBarrier } from "../../cluster/change-feed.ts";
import type { Propagating, Propagation } from "../../cluster/propagation.ts";
import type { ServerId } from "../../cluster/server-id.ts";
import type { Change, ChangeObserver } from "../../domain/change.ts";
import { KeyholdError } from "../../domain/errors.ts";
import type { KeyChange } from "../../verify/reader.ts";
import { changeError } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Checkout, Database } from "../connection/pool.ts";
import type { WithServer } from "../connection/server-position.ts";
import { sendBarrier } from "./leases.ts";

/**
 * Commits what the stores change, and resolves then. The stores only execute statements; what else a change needs is a decorator of this, put
 * around it by the wiring. Propagation is the innermost, since its barrier goes over the connection that made the change.
 *
 * @throws what the work does; the change may be made or not.
 */
export type Commit = <T>(work: ChangeWork<T>, options: CommitOptions<T>) => Promise<Committed<T>>;

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
export async function changeRow<R>(statement: PendingQuery<WithServer<R>[]>, ranOn: RanOn): Promise<R> {
  const row = firstRow(await statement);
  ranOn(row.server);
  return row;
}

export interface CommitOptions<T> {
  /** The name of its span in traces. */
  readonly statement?: string;
  /** Whether no node can have looked up what is changed, as for new keys. Then no barrier is needed, unless nodes may read another server. */
  readonly neverCached?: boolean;
  /** Whether the work has changed anything. If not, the barrier waits until the synchronous standby has the state that the work saw instead. */
  readonly isMade: (result: T) => boolean;
  /** What caches must drop, even if the work fails: it may have been committed. */
  readonly invalidates?: KeyChange;
  /** The changes of keys in the result; none by default. */
  readonly changesOf?: (result: T) => readonly Change[];
}

/** Commits over a connection of the database, and propagates the change to all nodes. */
export function propagating(database: Database, propagation: Propagation): Commit {
  return (work, options) => commitOver(database, propagation, work, options);
}

/** Invalidates the cache of this node after each commit, also one that failed. The notification may arrive later. */
export function invalidating(commit: Commit, invalidate: (change: KeyChange) => void): Commit {
  return (work, options) =>
    commit(work, options).finally(() => {
      if (options.invalidates !== undefined) invalidate(options.invalidates);
    });
}

/** Calls the observer with the changes of each commit. */
export function observed(commit: Commit, observe: ChangeObserver): Commit {
  return async (work, options) => {
    const committed = await commit(work, options);
    const changes = options.changesOf?.(committed.result) ?? [];
    if (changes.length > 0) observe(changes);
    return committed;
  };
}

/**
 * Waits until the change is propagated, and returns its result. Its error names those keys that this caller has changed: the callers of a
 * batch share the error.
 *
 * @throws KeyholdError `CHANGE_UNCONFIRMED`
 */
export async function awaitPropagation<T>(
  { result, propagated }: Committed<T>,
  changedKeyIds: (result: T) => readonly string[] = () => [],
): Promise<T> {
  await propagated.catch((error: unknown) => {
    if (!(error instanceof KeyholdError)) throw error;
    throw new KeyholdError(error.code, error.message, { cause: error.cause, changedKeyIds: changedKeyIds(result) });
  });
  return result;
}

/** Commits a statement of `withServer` that changes at most one row (`changeRow`), and returns it when that is propagated. */
export async function commitRow<R>(
  commit: Commit,
  statement: string,
  fragment: (sql: Sql) => Fragment,
  isMade: (row: R) => boolean,
): Promise<R> {
  const work: ChangeWork<R> = (sql, ranOn) => changeRow<R>(fragment(sql), ranOn);
  return awaitPropagation(await commit(work, { statement, isMade }));
}

/**
 * Makes a change and sends the barrier after it over the same connection, so that the leases that it returns are those of the server that
 * has the change.
 *
 * @throws what the work does; the change may be made or not.
 */
async function commitOver<T>(
  database: Database,
  propagation: Propagation,
  work: ChangeWork<T>,
  { statement, isMade, neverCached = false }: CommitOptions<T>,
): Promise<Committed<T>> {
  let made: { readonly result: T } | undefined;
  try {
    const [result, begun] = await database.run(async (sql, checkout) => {
      const servers = new Set<ServerId>();
      const result = await work(sql, (server) => servers.add(server));
      made = { result };
      const send: SendBarrier = async (mark) => {
        const answer = await sendBarrier(sql, mark, !isMade(result));
        // A transaction pooler may run the barrier on another server, where nodes do not receive the notification of the change.
        const { server } = answer.position;
        for (const other of servers) if (other !== server) throw new OtherServerError(other, server);
        return answer;
      };
      const needsNoBarrier = neverCached && propagation.isAcknowledgedByAll(servers);
      const begun = needsNoBarrier ? null : await propagation.begin(send);
      requireReplicated(checkout);
      return [result, begun] as const;
    }, statement);
    if (begun === null) return { result, propagated: Promise.resolve() };
    return { result, propagated: handled(propagation.confirm(begun, () => repeat(database, propagation))) };
  } catch (error) {
    if (made === undefined) throw changeError(error);
    return { result: made.result, propagated: handled(Promise.reject(asUnconfirmed(error))) };
  }
}

function repeat(database: Database, propagation: Propagation): Promise<Propagating> {
  return database.run(async (sql, checkout) => {
    const begun = await propagation.begin((mark) => sendBarrier(sql, mark, true));
    requireReplicated(checkout);
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

function requireReplicated({ isReplicationCancelled }: Checkout): void {
  if (!isReplicationCancelled) return;
  throw new KeyholdError(
    "CHANGE_UNCONFIRMED",
    "the change is committed, but the synchronous standbys have not confirmed it; retry, with the same request_id if one was set",
  );
}
