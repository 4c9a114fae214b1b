import type { Propagation } from "../cluster/propagation.ts";
import type { Change, ChangeObserver } from "../domain/change.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { KeyChange } from "../verify/reader.ts";
import type { Database } from "./pool.ts";
import { type ChangeOptions, type ChangeWork, type Committed, commit } from "./propagate.ts";

export interface CommitOptions<T> extends ChangeOptions<T> {
  /** What caches must drop, even if the work fails: it may have been committed. */
  readonly invalidates?: KeyChange;
  /** The changes of keys in the result; none by default. */
  readonly changesOf?: (result: T) => readonly Change[];
}

/**
 * Commits what the stores change. The stores only execute statements; what else a change needs is a decorator of this, put around it by
 * the wiring. Propagation is the innermost, since its barrier goes over the connection that made the change.
 */
export interface ChangeCommitter {
  /** Resolves when the change is committed. @throws what the work does; the change may be made or not. */
  commit<T>(work: ChangeWork<T>, options: CommitOptions<T>): Promise<Committed<T>>;
}

/** Commits over a connection of the database, and propagates the change to all nodes (`propagate.ts`). */
export function propagating(database: Database, propagation: Propagation): ChangeCommitter {
  return { commit: (work, options) => commit(database, propagation, work, options) };
}

/** Invalidates the cache of this node after each commit, also one that failed. The notification may arrive later. */
export function invalidating(committer: ChangeCommitter, invalidate: (change: KeyChange) => void): ChangeCommitter {
  return {
    commit: (work, options) =>
      committer.commit(work, options).finally(() => {
        if (options.invalidates !== undefined) invalidate(options.invalidates);
      }),
  };
}

/** Calls the observer with the changes of each commit. */
export function observed(committer: ChangeCommitter, observe: ChangeObserver): ChangeCommitter {
  return {
    commit: async (work, options) => {
      const committed = await committer.commit(work, options);
      const changes = options.changesOf?.(committed.result) ?? [];
      if (changes.length > 0) observe(changes);
      return committed;
    },
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
