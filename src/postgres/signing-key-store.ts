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
    list: () => database.run(async (sql) => (await sql<SigningKeyRow[]>`SELECT * FROM signing_keys`).map(toRecord)),
    addFirst: async (key, now) => {
      await database.run((sql) => sql`INSERT INTO signing_keys ${sql(toRow(sql, key, now))} ON CONFLICT DO NOTHING`);
    },
    replaceActive: async (key, now) => {
      await database.run((sql) =>
        sql.begin(async (transaction) => {
          await transaction`UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL`;
          await transaction`INSERT INTO signing_keys ${transaction(toRow(sql, key, now))}`;
        }),
      );
      await settle();
    },
    extendTokens: async (kid, until) => {
      await database.run(
        (sql) => sql`
          UPDATE signing_keys SET tokens_expire_time = greatest(tokens_expire_time, ${until}) WHERE kid = ${kid}`,
      );
    },
  };
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
