import type { Fragment, Sql } from "postgres";
import type { Propagation } from "../../cluster/propagation.ts";
import type { ServerId } from "../../cluster/server-id.ts";
import type { Change, ChangeObserver } from "../../domain/change.ts";
import { KeyholdError } from "../../domain/errors.ts";
import type { KeyChange } from "../../verify/reader.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import type { WithServer } from "../connection/server-position.ts";
import { groupCommit, type KeyStatement } from "./group-commit.ts";
import { sendBarrier } from "./leases.ts";
import { type Committed, fromSameServer, propagate } from "./propagate.ts";

/**
 * Commits what the stores change, and resolves then. The stores only execute statements; what else a change needs is a decorator of this, put
 * around it by the wiring. Propagation is the innermost, since its barrier goes over the connection that made the change.
 *
 * @throws what the work does; the change may be made or not.
 */
export type Commit = <T>(work: ChangeWork<T> | KeyStatement<T>, options: CommitOptions<T>) => Promise<Committed<T>>;

/** Must be called with each server that ran a statement of a change, or on which its effect was read. */
export type RanOn = (server: ServerId) => void;

/** Makes a change by statements over one connection, which commit one by one. */
export type ChangeWork<T> = (sql: Sql, ranOn: RanOn) => PromiseLike<T>;

export interface CommitOptions<T> {
  /** The name of its span in traces. */
  readonly statement?: string;
  /** Whether no node can have looked up what is changed, as for new keys. Then no barrier is needed, unless nodes may read another server. */
  readonly neverCached?: boolean;
  /**
   * Whether the work has changed anything, by default always. If not, the barrier waits until the synchronous standby has the state that the
   * work saw instead. A statement of `withServer` waits itself.
   */
  readonly isMade?: (result: T) => boolean;
  /** What caches must drop, even if the work fails: it may have been committed. */
  readonly invalidates?: KeyChange;
  /** The changes of keys in the result; none by default. */
  readonly changesOf?: (result: T) => readonly Change[];
}

/** Commits over a connection of the database, which prepares statements by default, and propagates the change to all nodes. */
export function propagating(database: Database, propagation: Propagation, isPrepared = true): Commit {
  const commitInGroup = groupCommit(database, propagation, isPrepared);
  return (work, options) =>
    typeof work === "function"
      ? commitOver(database, propagation, work, options)
      : commitInGroup(work, options.statement);
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

/** Commits a statement of `withServer` that changes at most one row, and returns it when that is propagated; its columns are null if there is none. */
export async function commitRow<R>(commit: Commit, statement: string, fragment: (sql: Sql) => Fragment): Promise<R> {
  const work: ChangeWork<R> = async (sql, ranOn) => {
    const row = firstRow(await sql<WithServer<R & object>[]>`${fragment(sql)}`);
    ranOn(row.server);
    return row;
  };
  return awaitPropagation(await commit(work, { statement }));
}

/**
 * Makes a change and sends the barrier after it over the same connection, so that the leases that it returns are those of the server that
 * has the change.
 *
 * @throws what the work does; the change may be made or not.
 */
function commitOver<T>(
  database: Database,
  propagation: Propagation,
  work: ChangeWork<T>,
  { statement, isMade = () => true, neverCached = false }: CommitOptions<T>,
): Promise<Committed<T>> {
  const make = async (sql: Sql, committed: (result: T) => void) => {
    const servers = new Set<ServerId>();
    const result = await work(sql, (server) => servers.add(server));
    committed(result);
    if (neverCached && propagation.isAcknowledgedByAll(servers)) return null;
    return propagation.begin(async (mark) => fromSameServer(await sendBarrier(sql, mark, !isMade(result)), servers));
  };
  return propagate(database, propagation, make, statement);
}
