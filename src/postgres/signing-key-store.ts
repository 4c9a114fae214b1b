import type { JSONValue, Sql } from "postgres";
import type { SigningKeyStore } from "../signing/store.ts";
import type { NewSigningKey, PublicSigningJwk, SigningKeyRecord } from "../token/signing-key.ts";
import type { Database } from "./pool.ts";

interface SigningKeyRow {
  kid: string;
  public_jwk: PublicSigningJwk;
  wrapped: Buffer;
  wrap_key_id: string;
  create_time: Date;
  retire_time: Date | null;
  tokens_expire_time: Date | null;
}

/** Signing keys in PostgreSQL. `settle` resolves when no server works by those from before the call. */
export function createSigningKeyStore(database: Database, settle: () => Promise<void>): SigningKeyStore {
  return {
    list: () =>
      database.run(
        async (sql) => (await sql<SigningKeyRow[]>`SELECT * FROM signing_keys`).map(toRecord),
        "signing_keys.list",
      ),
    addFirst: async (key, now) => {
      await database.run((sql) => sql`INSERT INTO signing_keys ${sql(toRow(sql, key, now))} ON CONFLICT DO NOTHING`);
    },
    replaceActive: async (key, now) => {
      await database.run((sql) => replaceActive(sql, key, now), "signing_keys.replace");
      await settle();
    },
    rewrap: async ({ kid, wrapped, wrapKeyId }, before) => {
      await database.run(
        (sql) => sql`
          UPDATE signing_keys SET wrapped = ${wrapped}, wrap_key_id = ${wrapKeyId} WHERE kid = ${kid} AND wrap_key_id = ${before}`,
      );
      await settle();
    },
    extendTokens: async (kid, until) => {
      await database.run(
        (sql) => sql`
          UPDATE signing_keys SET tokens_expire_time = greatest(tokens_expire_time, ${until}) WHERE kid = ${kid}`,
        "signing_keys.extend",
      );
    },
  };
}

/**
 * One statement: in a transaction of several, the driver ends the process when the connection is lost between two of them. The
 * INSERT reads what the UPDATE returns, and so comes after it: one key signs at a time, and the index that says so looks at once.
 */
function replaceActive(sql: Sql, key: NewSigningKey, now: Date) {
  return sql`
    WITH retired AS (UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL RETURNING kid)
    INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
    SELECT ${key.kid}::text, ${sql.json({ ...key.publicJwk } satisfies JSONValue)}::jsonb, ${key.wrapped}::bytea,
      ${key.wrapKeyId}::text, ${now}::timestamptz
    FROM (SELECT count(*) FROM retired) AS all_retired`;
}

function toRow(sql: Sql, key: NewSigningKey, now: Date) {
  return {
    kid: key.kid,
    public_jwk: sql.json({ ...key.publicJwk } satisfies JSONValue),
    wrapped: key.wrapped,
    wrap_key_id: key.wrapKeyId,
    create_time: now,
  };
}

function toRecord(row: SigningKeyRow): SigningKeyRecord {
  return {
    kid: row.kid,
    publicJwk: row.public_jwk,
    wrapped: row.wrapped,
    wrapKeyId: row.wrap_key_id,
    createTime: row.create_time,
    retireTime: row.retire_time,
    tokensExpireTime: row.tokens_expire_time,
  };
}
