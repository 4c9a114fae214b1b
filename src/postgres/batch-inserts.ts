import type { Propagation } from "../cluster/propagation.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Insertion, NewKey } from "../keys/store.ts";
import { Batcher } from "./batch.ts";
import { wasRolledBack } from "./errors.ts";
import { COPY_ROWS, insertKeys } from "./insert.ts";
import type { Database } from "./pool.ts";
import { type Committed, commit } from "./propagate.ts";

/**
 * 2 spare the second of two callers the wait for the commit of the first. With 64 clients they store as many keys as 1, within
 * what can be measured, since they are sent side by side only when they are of a size.
 */
const MAX_IN_FLIGHT = 2;

/** Fewer than go by COPY, which takes no key that was sent before, as those are that are tried again. */
const MAX_KEYS = COPY_ROWS - 1;

/**
 * Not so a deadlock: keys go in the order of their raw keys, and two statements may have the same two requests in different orders.
 */
function concernsAll(error: unknown): boolean {
  return error instanceof KeyholdError && error.code === "DATABASE_UNAVAILABLE" && !wasRolledBack(error);
}

/**
 * Stores keys. Single ones that come while others are being stored go together, in one statement and one commit. A failure of
 * the database says nothing of any key, and all of its statement hear it. An imported key may have been looked for before, so
 * that it is propagated; an issued one cannot have been.
 */
export function batchInserts(
  database: Database,
  propagation: Propagation,
): (keys: readonly NewKey[]) => Promise<Committed<Insertion[]>> {
  const insertMany = (keys: readonly NewKey[]) => {
    const isUnknown = keys.every(({ key }) => key.kind === "issued");
    const options = { statement: "keys.insert", isMade: isWholeNew, isUnknown };
    return commit(database, propagation, (sql, ranOn) => insertKeys(sql, keys, ranOn), options);
  };
  const insertSingles = async (keys: readonly NewKey[]) => {
    const { result, confirmed } = await insertMany(keys);
    return result.map((insertion) => ({ result: [insertion], confirmed }));
  };
  const singles = new Batcher(insertSingles, {
    maxInFlight: MAX_IN_FLIGHT,
    maxItems: MAX_KEYS,
    concernsAll,
  });
  return async (keys) => {
    const [only, ...others] = keys;
    if (only === undefined) return { result: [], confirmed: Promise.resolve() };
    return others.length === 0 ? singles.do(only) : insertMany(keys);
  };
}

function isWholeNew(insertions: readonly Insertion[]): boolean {
  return insertions.every(({ outcome }) => outcome === "inserted");
}
