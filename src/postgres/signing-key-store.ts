import type { Fragment, JSONValue, Sql } from "postgres";
import type { ServerId, ServerObserver } from "../cluster/server-id.ts";
import type { SigningKeyStore } from "../signing/signing.ts";
import type { NewSigningKey, SigningKeyRecord } from "../token/signing-key.ts";
import { awaitPropagation, type ChangeCommitter, type ChangeWork, changeRow } from "./change-committer.ts";
import type { Database } from "./pool.ts";
import { serverId, withServer } from "./server-position.ts";

/** Creates the store of signing keys in PostgreSQL. A change resolves when no server uses the previous keys any more. */
export function createSigningKeyStore(
  database: Database,
  changes: ChangeCommitter,
  feed: ServerObserver,
): SigningKeyStore {
  const change = async (change: (sql: Sql) => Fragment, statement?: string) => {
    const isMade = (kid: string | null) => kid !== null;
    const work: ChangeWork<string | null> = async (sql, ranOn) =>
      (await changeRow<{ kid: string | null }>(sql, change(sql), ranOn)).kid;
    await awaitPropagation(await changes.commit(work, { isMade, ...(statement === undefined ? {} : { statement }) }));
  };
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
          sql`INSERT INTO signing_keys ${sql({ ...key, publicJwk: toJson(sql, key), createTime: now })} ON CONFLICT DO NOTHING`,
      );
    },
    replaceActive: async (key, now) => {
      await change((sql) => replaceActive(sql, key, now), "signing_keys.replace");
    },
    rewrap: async ({ kid, wrapped, wrapKeyId }, before) => {
      await change((sql) =>
        withServer(
          sql,
          sql`
              UPDATE signing_keys SET wrapped = ${wrapped}, wrap_key_id = ${wrapKeyId}
              WHERE kid = ${kid} AND wrap_key_id = ${before} RETURNING kid`,
        ),
      );
    },
    extendTokens: async (kid, until) => {
      await database.run(
        (sql) => sql`
          UPDATE signing_keys SET tokens_expire_time = greatest(tokens_expire_time, ${until}) WHERE kid = ${kid}`,
        "signing_keys.extend",
      );
    },
    nodesWithout: async (algorithm) => {
      const rows = await database.run(
        (sql) => sql<{ name: string }[]>`
          SELECT DISTINCT name FROM nodes
          WHERE NOT ${algorithm} = ANY (signing_algorithms)
            AND clock_timestamp() < renew_time + ttl_ms * interval '1 millisecond'
          ORDER BY name`,
        "nodes.without_algorithm",
      );
      return rows.map(({ name }) => name);
    },
  };
}

/** Reads all signing keys, unordered, and the identity of the server. */
export async function readSigningKeys(
  database: Database,
): Promise<{ readonly server: ServerId; readonly records: SigningKeyRecord[] }> {
  const rows = await database.run(
    (sql) => sql<AnswerRow[]>`
      SELECT ${serverId(sql)} AS server, signing_keys.* FROM (VALUES (1)) AS one LEFT JOIN signing_keys ON true`,
    "signing_keys.list",
  );
  const records = rows.flatMap(({ server: _, ...record }) => (record.kid === null ? [] : [record]));
  return { server: rows[0]?.server ?? "", records };
}

/** Without signing keys the result is one row with the server alone. */
type AnswerRow = { readonly server: ServerId } & (SigningKeyRecord | { readonly kid: null });

/**
 * One statement, because the driver ends the process when a connection is lost between two statements of a transaction. The INSERT
 * reads the result of the UPDATE and so runs after it, as the unique index on the active key requires.
 */
function replaceActive(sql: Sql, key: NewSigningKey, now: Date): Fragment {
  const retired = sql`retired AS (UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL RETURNING kid),`;
  const made = sql`
    INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
    SELECT ${key.kid}::text, ${toJson(sql, key)}::jsonb, ${key.wrapped}::bytea,
      ${key.wrapKeyId}::text, ${now}::timestamptz
    FROM (SELECT count(*) FROM retired) AS all_retired
    RETURNING kid`;
  return withServer(sql, made, retired);
}

function toJson(sql: Sql, { publicJwk }: NewSigningKey) {
  return sql.json({ ...publicJwk } satisfies JSONValue);
}
