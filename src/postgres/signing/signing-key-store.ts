import type { Fragment, JSONValue, Sql } from "postgres";
import type { ServerObserver } from "../../cluster/server-id.ts";
import type { RevokedKids, SigningKeyStore } from "../../signing/signing.ts";
import type { NewSigningKey, SigningKeyRecord } from "../../token/signing-key.ts";
import { type Commit, commitRow } from "../cluster/change-committer.ts";
import type { Database } from "../connection/pool.ts";
import { serverId, type WithServer, withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Creates the store of signing keys in PostgreSQL. A change resolves when no server uses the previous keys any more. */
export function createSigningKeyStore(database: Database, commit: Commit, feed: ServerObserver): SigningKeyStore {
  const change = <R extends { readonly kid: string | null }>(statement: string, fragment: (sql: Sql) => Fragment) =>
    commitRow<R>(commit, statement, fragment);
  return {
    list: async () => {
      const expected = feed.server;
      const { server, records } = await readSigningKeys(database);
      feed.requireServer(server, expected);
      return records;
    },
    addFirst: async (key, now) => {
      await database.run(
        (sql) =>
          sql`INSERT INTO signing_keys ${sql({ ...key, publicJwk: toJson(sql, key), createTime: now })} ON CONFLICT DO NOTHING
            RETURNING ${ownSession(sql)}`,
      );
    },
    replaceActive: async (key, now) => {
      await change("signing_keys.replace", (sql) => replaceActive(sql, key, now));
    },
    revoke: async (kid, replacement, now) => {
      const row = await change<RevokedKids>("signing_keys.revoke", (sql) => revoke(sql, kid, replacement, now));
      return { kid: row.kid, replacement: row.replacement };
    },
    rewrap: async ({ kid, wrapped, wrapKeyId }, before) => {
      await change("signing_keys.rewrap", (sql) =>
        withServer(
          sql,
          sql`UPDATE signing_keys SET wrapped = ${wrapped}, wrap_key_id = ${wrapKeyId} WHERE kid = ${kid} AND wrap_key_id = ${before} RETURNING kid`,
        ),
      );
    },
    extendTokens: async (kid, until) => {
      await database.run(
        (sql) => sql`
          UPDATE signing_keys SET tokens_expire_time = greatest(tokens_expire_time, ${until}) WHERE kid = ${kid} AND ${ownSession(sql)}`,
        "signing_keys.extend",
      );
    },
    nodesWithout: async (algorithm) => {
      const rows = await database.run(
        (sql) => sql<{ name: string }[]>`
          SELECT DISTINCT name FROM nodes
          WHERE ${ownSession(sql)} AND NOT ${algorithm} = ANY (signing_algorithms)
            AND clock_timestamp() < renew_time + ttl_ms * interval '1 millisecond'
          ORDER BY name`,
        "nodes.without_algorithm",
      );
      return rows.map(({ name }) => name);
    },
  };
}

/** Reads all signing keys, unordered, and the identity of the server. Without keys the result is one row with the server alone. */
export async function readSigningKeys(database: Database) {
  const rows = await database.run(
    (sql) => sql<WithServer<SigningKeyRecord | { readonly kid: null }>[]>`
      SELECT ${serverId(sql)} AS server, signing_keys.* FROM (VALUES (1)) AS one LEFT JOIN signing_keys ON true`,
    "signing_keys.list",
  );
  const records = rows.flatMap(({ server: _, ...record }) => (record.kid === null ? [] : [record]));
  return { server: rows[0]?.server ?? "", records };
}

/**
 * One statement, because the driver ends the process when a connection is lost between two statements of a transaction. The INSERT
 * reads the result of the UPDATE and so runs after it, as the unique index on the active key requires.
 */
function replaceActive(sql: Sql, key: NewSigningKey, now: Date): Fragment {
  const retired = sql`retired AS (UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL RETURNING kid),`;
  const made = insertKey(sql, key, now, sql`FROM (SELECT count(*) FROM retired) AS all_retired`);
  return withServer<Fragment>(sql, made, retired);
}

/**
 * One statement, like `replaceActive`: at no time is there no active key. The INSERT reads the result of the DELETE and so runs after it. If a
 * rotation retires the key meanwhile, the DELETE waits for it and returns the retired key.
 */
function revoke(sql: Sql, kid: string, replacement: NewSigningKey | null, now: Date): Fragment {
  if (replacement === null) {
    const deleted = sql`DELETE FROM signing_keys WHERE kid = ${kid} AND retire_time IS NOT NULL RETURNING kid`;
    return withServer(sql, sql`SELECT kid, NULL AS replacement FROM deleted`, sql`deleted AS (${deleted}),`);
  }
  const deleted = sql`DELETE FROM signing_keys WHERE kid = ${kid} RETURNING kid, retire_time`;
  const made = insertKey(sql, replacement, now, sql`FROM deleted WHERE retire_time IS NULL`);
  return withServer(
    sql,
    sql`SELECT kid, (SELECT kid FROM made) AS replacement FROM deleted`,
    sql`deleted AS (${deleted}), made AS (${made}),`,
  );
}

function insertKey(sql: Sql, key: NewSigningKey, now: Date, from: Fragment): Fragment {
  return sql`
    INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
    SELECT ${key.kid}::text, ${toJson(sql, key)}::jsonb, ${key.wrapped}::bytea, ${key.wrapKeyId}::text, ${now}::timestamptz ${from}
    RETURNING kid`;
}

function toJson(sql: Sql, { publicJwk }: NewSigningKey) {
  return sql.json({ ...publicJwk } satisfies JSONValue);
}
