import type { Change, ChangeVerb } from "../domain/change.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { Insertion, KeyMutation, KeyName, KeyStore } from "../keys/ports.ts";
import { awaitPropagation, type Commit } from "./cluster/change-committer.ts";
import type { KeyStatement } from "./cluster/group-commit.ts";
import type { Database } from "./connection/pool.ts";
import { execute } from "./connection/prepared.ts";
import { batchGets } from "./keys/batch-gets.ts";
import { batchInserts } from "./keys/batch-inserts.ts";
import { type ChangedRow, keyBefore, mutationOf, type NoRow, toChange } from "./keys/change-one.ts";
import { earliestTime, latestTime, readTime } from "./keys/expiry.ts";
import { listKeys } from "./lists/list-keys.ts";

export interface KeyDatabases {
  readonly reads: Database;
  /** Prepares no statement: each filter is another one, and a connection would keep them all. */
  readonly lists: Database;
}

/**
 * Stores keys in PostgreSQL. Each change is one statement that tests its own condition, so that one of two concurrent changes wins. A
 * change returns when it is propagated, and so does one whose condition did not hold: the reason may be an earlier change whose
 * response was lost. `commitUrgent` commits what takes rights away, and must not wait behind other changes.
 */
export function createKeyStore({ reads, lists }: KeyDatabases, commit: Commit, commitUrgent = commit): KeyStore {
  const insert = batchInserts(commit);
  return {
    insert: async (keys) => awaitPropagation(await insert(keys), insertedKeyIds),
    get: batchGets(reads),
    expiryTime: (verb, now) =>
      reads.run((sql) => readTime(sql, (verb === "disable" ? earliestTime : latestTime)(sql, now)), "keys.time"),
    list: (query, now) => lists.run((sql) => listKeys(sql, query, now), "keys.list"),
    change: async (name, change, principal, now) => {
      const commitChange = URGENT.has(change.verb) ? commitUrgent : commit;
      const committed = await commitChange(changeOf(name, change, principal, now), {
        statement: `keys.${change.verb}`,
        invalidates: { keyIds: [name.keyId], digests: [] },
        changesOf: ({ made }) => made,
      });
      return (await awaitPropagation(committed, ({ made }) => made.map(({ key }) => key.keyId))).key;
    },
  };
}

/** Changes that take rights away. */
const URGENT: ReadonlySet<ChangeVerb> = new Set(["revoke", "disable"]);

interface ChangedKey {
  /** The key after the change, or as it is if it needs none. Null if the condition did not hold. */
  readonly key: ApiKey | null;
  /** The change that was made. */
  readonly made: readonly Change[];
}

function changeOf(name: KeyName, change: KeyMutation, principal: Principal, now: Date): KeyStatement<ChangedKey> {
  const execution = mutationOf(name, change, principal, now);
  return {
    keyId: name.keyId,
    query: (sql) => execute(sql, execution),
    resultOf: (row: ChangedRow | NoRow) => {
      if (row["before.keyId"] === null) return { key: null, made: [] };
      const made = toChange(change.verb, row, principal);
      return made === null ? { key: keyBefore(row), made: [] } : { key: made.after ?? made.before, made: [made] };
    },
  };
}

function insertedKeyIds(insertions: readonly Insertion[]): string[] {
  return insertions.flatMap((insertion) => (insertion.outcome === "inserted" ? [insertion.key.keyId] : []));
}
