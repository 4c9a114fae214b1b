import type { Fragment, Sql } from "postgres";
import type { Change, ChangeVerb } from "../domain/change.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import type { Insertion, KeyName, KeyStore } from "../keys/ports.ts";
import { awaitPropagation, type ChangeCommitter, type ChangeWork, changeRow } from "./cluster/change-committer.ts";
import type { Database } from "./connection/pool.ts";
import { batchGets } from "./keys/batch-gets.ts";
import { batchInserts } from "./keys/batch-inserts.ts";
import {
  type ChangedRow,
  deleteKey,
  disableKey,
  enableKey,
  keyBefore,
  revokeKey,
  rotateKey,
  toChange,
  type UnchangedRow,
  updateKey,
} from "./keys/change-one.ts";
import { earliestTime, latestTime, readTime } from "./keys/expiry.ts";
import { toApiKey } from "./keys/rows.ts";
import { createLists } from "./lists/list-keys.ts";

export interface KeyDatabases {
  readonly reads: Database;
  /** Prepares only what is marked: each filter is another statement, and a connection would keep them all. */
  readonly lists: Database;
}

/**
 * Stores keys in PostgreSQL. Each change is one statement that tests its own condition, so that one of two concurrent changes wins. A
 * change returns when it is propagated, and so does one whose condition did not hold: the reason may be an earlier change whose
 * response was lost. `urgent` commits what takes rights away, and must not wait behind other changes.
 */
export function createKeyStore({ reads, lists }: KeyDatabases, changes: ChangeCommitter, urgent = changes): KeyStore {
  const change = async (
    verb: ChangeVerb,
    { keyId }: KeyName,
    principal: Principal,
    statement: (sql: Sql) => Fragment,
    committer = changes,
  ): Promise<Change | Unchanged | null> => {
    const work: ChangeWork<Change | Unchanged | null> = async (sql, ranOn) => {
      const row = await changeRow<ChangedRow | UnchangedRow | { keyId: null }>(sql, statement(sql), ranOn);
      if (row.keyId !== null) return toChange(verb, row, principal);
      return "before.keyId" in row && row["before.keyId"] !== null ? { verb: null, after: keyBefore(row) } : null;
    };
    const isMade = (made: Change | Unchanged | null): made is Change => made !== null && made.verb !== null;
    const committed = await committer.commit(work, {
      statement: `keys.${verb}`,
      isMade,
      invalidates: { keyIds: [keyId], digests: [] },
      changesOf: (made) => (isMade(made) ? [made] : []),
    });
    return awaitPropagation(committed, (made) => (isMade(made) ? [keyId] : []));
  };
  const changeKey = async (...args: Parameters<typeof change>) => (await change(...args))?.after ?? null;
  const insert = batchInserts(changes);
  const list = createLists();
  return {
    insert: async (keys) => awaitPropagation(await insert(keys), insertedKeyIds),
    get: batchGets(reads),
    latestTime: (now) => reads.run((sql) => readTime(sql, latestTime(sql, now)), "keys.time"),
    earliestTime: (now) => reads.run((sql) => readTime(sql, earliestTime(sql, now)), "keys.time"),
    list: async (query, now) => (await lists.run((sql) => list(sql, query, now), "keys.list")).map(toApiKey),
    update: (name, update, principal, now) =>
      changeKey("update", name, principal, (sql) => updateKey(sql, name, update, principal, now)),
    rotate: (name, rotation, principal, now) =>
      changeKey("rotate", name, principal, (sql) => rotateKey(sql, name, rotation, principal, now)),
    revoke: (name, revocation, principal, now) =>
      changeKey("revoke", name, principal, (sql) => revokeKey(sql, name, revocation, principal, now), urgent),
    disable: (name, reason, principal, now) =>
      changeKey("disable", name, principal, (sql) => disableKey(sql, name, reason, principal, now), urgent),
    enable: (name, principal, now) =>
      changeKey("enable", name, principal, (sql) => enableKey(sql, name, principal, now)),
    delete: async (name, principal) =>
      (await change("delete", name, principal, (sql) => deleteKey(sql, name, principal))) !== null,
  };
}

/** A key that was in the requested state already. */
interface Unchanged {
  readonly verb: null;
  readonly after: ApiKey;
}

function insertedKeyIds(insertions: readonly Insertion[]): string[] {
  return insertions.flatMap((insertion) => (insertion.outcome === "inserted" ? [insertion.key.keyId] : []));
}
