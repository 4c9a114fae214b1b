import type { Change } from "../../domain/change.ts";
import { KeyholdError } from "../../domain/errors.ts";
import type { Insertion, NewKey } from "../../keys/ports.ts";
import { Batcher } from "../../lib/batcher.ts";
import type { KeyChange } from "../../verify/reader.ts";
import type { Commit } from "../cluster/change-committer.ts";
import type { Committed } from "../cluster/propagate.ts";
import { wasRolledBack } from "../connection/errors.ts";
import { COPY_ROWS, insertKeys } from "./insert.ts";

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
export function batchInserts(commit: Commit): (keys: readonly NewKey[]) => Promise<Committed<Insertion[]>> {
  const insertMany = (keys: readonly NewKey[]) => {
    const neverCached = keys.every(({ key }) => key.kind === "issued");
    return commit((sql, ranOn) => insertKeys(sql, keys, ranOn), {
      ...{ statement: "keys.insert", neverCached },
      isMade: (insertions) => insertions.every(({ outcome }) => outcome === "inserted"),
      invalidates: lookupsOf(keys),
      changesOf: (insertions) => changesOf(keys, insertions),
    });
  };
  const insertSingles = async (keys: readonly NewKey[]) => {
    const { result, propagated } = await insertMany(keys);
    return result.map((insertion) => ({ result: [insertion], propagated }));
  };
  const singles = new Batcher(insertSingles, {
    maxInFlight: MAX_IN_FLIGHT,
    maxItems: MAX_KEYS,
    concernsAll,
  });
  return async (keys) => {
    const [only, ...others] = keys;
    if (only === undefined) return { result: [], propagated: Promise.resolve() };
    return others.length === 0 ? singles.do(only) : insertMany(keys);
  };
}

function changesOf(keys: readonly NewKey[], insertions: readonly Insertion[]): Change[] {
  return insertions.flatMap((insertion, place): Change[] => {
    const principal = keys[place]?.principal;
    if (insertion.outcome !== "inserted" || principal === undefined) return [];
    const { key } = insertion;
    return [{ verb: key.kind === "issued" ? "issue" : "import", key, before: null, after: key, principal }];
  });
}

/**
 * A look-up of an imported raw key may have found nothing before, under any server key. A new identifier was looked up by nobody, and an
 * issued key is looked up by nothing else.
 */
function lookupsOf(keys: readonly NewKey[]): KeyChange {
  const imported = keys.filter(({ key }) => key.kind === "imported");
  return {
    keyIds: [],
    digests: imported.flatMap(({ digest, otherDigests, hash }) =>
      [digest, ...otherDigests, ...(hash?.lookup?.digests ?? [])].map((one) => one.digest),
    ),
  };
}
