import type { Fragment, Sql } from "postgres";
import type { Change } from "../domain/change.ts";
import type { Principal } from "../domain/principal.ts";
import type { DescendantStore } from "../keys/descendants.ts";
import type { Revocation } from "../keys/store.ts";
import { awaitPropagation, type ChangeCommitter } from "./change-committer.ts";
import { handledBy, visibleTo } from "./handled-by.ts";
import type { Database } from "./pool.ts";
import { firstRow, KEY_COLUMNS } from "./rows.ts";
import { type WithServer, withServer } from "./server-position.ts";
import { type ChangedRow, setRevoked, toStateChange } from "./state-changes.ts";

/** Finds descendants by `created_by`, with the index of migration 0015. */
export function createDescendantStore(reads: Database, changes: ChangeCommitter): DescendantStore {
  const revokeSome: DescendantStore["revokeSome"] = async (keyId, revocation, principal, limit, now) => {
    // Filled before any of them is revoked: this node must drop them even if the response to the statement is lost.
    const keyIds: string[] = [];
    const committed = await changes.commit(
      async (sql, ranOn) => {
        keyIds.push(...(await findSlice(sql, await findCreators(sql, keyId), principal, limit)));
        const rows = await sql<WithServer<ChangedRow | { keyId: null }>[]>`
          ${revokeSlice(sql, keyIds, revocation, principal, now)}`;
        ranOn(firstRow(rows).server);
        return rows.flatMap((row) => (row.keyId === null ? [] : [toStateChange("revoke", row, principal)]));
      },
      {
        statement: "keys.revoke_descendants",
        isMade: (made) => made.length > 0,
        invalidates: { keyIds, digests: [] },
        changesOf: (made) => made,
      },
    );
    const revokedKeys = (made: readonly Change[]) => made.map(({ key }) => key.keyId);
    return { found: keyIds.length, revoked: revokedKeys(await awaitPropagation(committed, revokedKeys)) };
  };
  const count = (keyId: string, { restrictions }: Principal) =>
    reads.run(async (sql) => {
      const rows = await sql<{ count: number }[]>`
        SELECT count(*)::integer AS count FROM api_keys
        WHERE ${createdBy(sql, await findCreators(sql, keyId))} AND ${visibleTo(sql, restrictions)}`;
      return firstRow(rows).count;
    }, "keys.count_descendants");
  return { revokeSome, count };
}

/** Without this, in these words, the index is not used. */
function hasCreator(sql: Sql): Fragment {
  return sql`(revoke_time IS NULL AND created_by ^@ 'admin-token:')`;
}

function createdBy(sql: Sql, creators: readonly string[]): Fragment {
  return sql`(${hasCreator(sql)} AND created_by = ANY (${[...creators]}::text[]))`;
}

/**
 * Returns the `created_by` of keys that are not revoked and descend from this one. An admin token may have created millions of keys, and few of
 * them create keys. So the distinct creators are read from the index, one step for each, and their own creators are followed up to the key.
 * A cycle, which only a change by hand can make, ends with the second visit (`UNION`).
 */
async function findCreators(sql: Sql, keyId: string): Promise<string[]> {
  const rows = await sql<{ creator: string }[]>`
    WITH RECURSIVE creators (creator) AS (
      (SELECT created_by FROM api_keys WHERE ${hasCreator(sql)} ORDER BY created_by LIMIT 1)
      UNION ALL
      SELECT (
        SELECT created_by FROM api_keys WHERE ${hasCreator(sql)} AND created_by > creators.creator ORDER BY created_by LIMIT 1
      ) FROM creators WHERE creators.creator IS NOT NULL
    ), ancestors (creator, ancestor) AS (
      SELECT creator, creator FROM creators WHERE creator IS NOT NULL
      UNION
      SELECT creator, created_by FROM ancestors JOIN api_keys ON key_id = substr(ancestor, 13)::uuid
      WHERE created_by ^@ 'admin-token:'
    )
    SELECT creator FROM ancestors WHERE ancestor = ${`admin-token:${keyId}`}`;
  return rows.map(({ creator }) => creator);
}

async function findSlice(
  sql: Sql,
  creators: readonly string[],
  principal: Principal,
  limit: number,
): Promise<string[]> {
  const rows = await sql<{ keyId: string }[]>`
    SELECT key_id FROM api_keys WHERE ${createdBy(sql, creators)} AND ${handledBy(sql, principal)} LIMIT ${limit}`;
  return rows.map(({ keyId }) => keyId);
}

/** Locks the keys in the order of their ids, as every statement that locks several. */
function revokeSlice(
  sql: Sql,
  keyIds: readonly string[],
  revocation: Revocation,
  principal: Principal,
  now: Date,
): Fragment {
  const before = sql`
    before AS (
      SELECT key_id AS before_key_id, update_time AS before_update_time FROM api_keys
      WHERE key_id = ANY (${[...keyIds]}::uuid[])
        AND CASE WHEN revoke_time IS NULL AND ${handledBy(sql, principal)} THEN true ELSE false END
      ORDER BY key_id FOR NO KEY UPDATE
    ),`;
  const update = sql`
    UPDATE api_keys SET ${setRevoked(sql, revocation, now)} FROM before WHERE key_id = before_key_id RETURNING ${sql(KEY_COLUMNS)}, before_update_time`;
  return withServer(sql, update, before);
}
