import type { Fragment, Sql } from "postgres";
import type { HmacKeyRecord, HmacKeyStore, ListedHmacKey } from "../../hashing/store.ts";
import { type Commit, commitRow } from "../cluster/change-committer.ts";
import { callContext } from "../connection/call-context.ts";
import { isForeignKeyViolation } from "../connection/errors.ts";
import type { Database } from "../connection/pool.ts";
import { withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Creates the store of HMAC keys in PostgreSQL. */
export function createHmacKeyStore(
  { database, lists }: Readonly<Record<"database" | "lists", Database>>,
  commit: Commit,
): HmacKeyStore {
  const change = async (statement: string, fragment: (sql: Sql) => Fragment) =>
    (await commitRow<{ readonly hmacKeyId: string | null }>(commit, statement, fragment)).hmacKeyId !== null;
  const find = async (hmacKeyId: string): Promise<HmacKeyRecord | null> => {
    const rows = await database.run(
      (sql) => sql<HmacKeyRecord[]>`
        SELECT hmac_key_id, wrapped_key AS wrapped, wrap_key_id, create_time, created_by FROM hmac_keys
        WHERE hmac_key_id = ${hmacKeyId} AND ${ownSession(sql)}`,
      "hmac_keys.find",
    );
    return rows[0] ?? null;
  };
  return {
    add: (key, principal) => change("hmac_keys.add", (sql) => addKey(sql, key, callContext(principal))),
    find,
    list: () => lists.run(listKeys, "hmac_keys.list"),
    delete: async (hmacKeyId, principal) => {
      const deletion = (sql: Sql) => deleteKey(sql, hmacKeyId, callContext(principal));
      try {
        if (await change("hmac_keys.delete", deletion)) return "deleted";
      } catch (error) {
        // A key was imported with it at the same time.
        if (isForeignKeyViolation(error)) return "in use";
        throw error;
      }
      return (await find(hmacKeyId)) === null ? "absent" : "in use";
    },
  };
}

/** Adds nothing if the id is taken, or no slot is free. The slot is random, so that concurrent calls rarely choose the same one. */
function addKey(
  sql: Sql,
  { hmacKeyId, wrapped, wrapKeyId, createTime, createdBy }: HmacKeyRecord,
  call: string,
): Fragment {
  const insertion = sql`
    INSERT INTO hmac_keys (hmac_key_id, slot, wrapped_key, wrap_key_id, create_time, created_by)
    SELECT ${hmacKeyId}::text, free, ${wrapped}::bytea, ${wrapKeyId}::text, ${createTime}::timestamptz, ${createdBy}::text
    FROM generate_series(1, 100) AS free WHERE NOT EXISTS (SELECT FROM hmac_keys WHERE slot = free) ORDER BY random() LIMIT 1
    ON CONFLICT DO NOTHING
    RETURNING hmac_key_id`;
  return withServer<Fragment>(sql, insertion, sql``, call);
}

function listKeys(sql: Sql): PromiseLike<ListedHmacKey[]> {
  return sql<ListedHmacKey[]>`
    SELECT hmac_key_id, create_time, created_by, (
      SELECT count(*)::int FROM api_keys JOIN hash_schemes ON hash_scheme_id = scheme_id
      WHERE hash_schemes.hmac_key_id = hmac_keys.hmac_key_id
    ) AS not_adopted_count
    FROM hmac_keys WHERE ${ownSession(sql)} ORDER BY hmac_key_id`;
}

/** Deletes the key with its schemes that no API key has, if these are all of its schemes. */
function deleteKey(sql: Sql, hmacKeyId: string, call: string): Fragment {
  const unused = sql`
    unused AS (
      DELETE FROM hash_schemes
      WHERE hmac_key_id = ${hmacKeyId} AND (SELECT key_id FROM api_keys WHERE hash_scheme_id = scheme_id LIMIT 1) IS NULL
      RETURNING scheme_id
    ),`;
  const deletion = sql`
    DELETE FROM hmac_keys
    WHERE hmac_key_id = ${hmacKeyId}
      AND (SELECT count(*) FROM hash_schemes WHERE hmac_key_id = ${hmacKeyId}) = (SELECT count(*) FROM unused)
    RETURNING hmac_key_id`;
  return withServer<Fragment>(sql, deletion, unused, call);
}
