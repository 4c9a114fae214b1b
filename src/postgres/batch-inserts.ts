import type { Propagation } from "../cluster/propagation.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Insertion, NewKey } from "../keys/store.ts";
import { Batcher } from "./batch.ts";
import { wasRolledBack } from "./errors.ts";
import { COPY_ROWS, insertKeys } from "./insert.ts";
import type { Database } from "./pool.ts";
import { type Committed, commit } from "./propagate.ts";

/** With two, the second of two callers need not wait for the commit of the first. With 64 clients the throughput equals that of one. */
const MAX_IN_FLIGHT = 2;

/** Fewer than use COPY, which fails for keys that exist, as those of retried calls do. */
const MAX_KEYS = COPY_ROWS - 1;

/** False for a deadlock: keys are ordered by their raw keys, and two statements may contain the same two requests in different orders. */
function concernsAll(error: unknown): boolean {
  return error instanceof KeyholdError && error.code === "DATABASE_UNAVAILABLE" && !wasRolledBack(error);
}

/**
 * Stores keys. Concurrent single inserts are batched into one statement and one commit. A failure of the database rejects the whole
 * batch. An imported key may have been looked up before and is propagated; an issued key cannot have been.
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
