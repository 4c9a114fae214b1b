import type { Sql } from "postgres";
import type { ServerId, ServerObserver } from "../../cluster/server-id.ts";
import type {
  HashSchemeRecord,
  HashSchemeStore,
  HmacKeyRecord,
  NewUnused,
  RewrapStore,
  StoredHashing,
} from "../../hashing/store.ts";
import { isForeignKeyViolation } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { serverId } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { parseTime } from "../connection/value-types.ts";

/**
 * Creates the store of hash schemes in PostgreSQL: over `reads` what verifications wait for, over `lists` what may read many keys. What is
 * added is notified to every node before a key with it is: the barrier of the key's import covers it.
 */
export function createHashSchemeStore(
  { database, lists, reads }: Readonly<Record<"database" | "lists" | "reads", Database>>,
  feed: ServerObserver,
): HashSchemeStore & RewrapStore {
  return {
    read: async () => {
      const expected = feed.server;
      const { server, stored } = await readHashing(reads);
      feed.requireServer(server, expected);
      return stored;
    },
    addScheme: async ({ affixes, ...scheme }) => {
      const row = { ...scheme, wrappedAffixes: affixes?.wrapped ?? null, wrapKeyId: affixes?.wrapKeyId ?? null };
      const added = await unlessReferenced(() =>
        database.run(
          (sql) => sql`
            INSERT INTO hash_schemes ${sql(row)} ON CONFLICT DO NOTHING RETURNING scheme_id, ${ownSession(sql)}`,
          "hash_schemes.add",
        ),
      );
      return added !== null && added.length > 0;
    },
    addPrefixLength: (length) => database.run((sql) => addPrefixLength(sql, length), "hash_prefix_lengths.add"),
    removeUnused: () => lists.run(removeUnused, "hash_schemes.remove"),
    rewrapHmacKey: async (hmacKeyId, { wrapped, wrapKeyId }, before) => {
      await database.run(
        (sql) => sql`
          UPDATE hmac_keys SET wrapped_key = ${wrapped}, wrap_key_id = ${wrapKeyId}
          WHERE hmac_key_id = ${hmacKeyId} AND wrap_key_id = ${before} AND ${ownSession(sql)}`,
      );
    },
    rewrapAffixes: async (schemeId, { wrapped, wrapKeyId }, before) => {
      await database.run(
        (sql) => sql`
          UPDATE hash_schemes SET wrapped_affixes = ${wrapped}, wrap_key_id = ${wrapKeyId}
          WHERE scheme_id = ${schemeId} AND wrap_key_id = ${before} AND ${ownSession(sql)}`,
      );
    },
  };
}

/** Rows as JSON: bytes are hexadecimal, and times are texts. */
interface HashingRow {
  readonly server: ServerId;
  readonly schemes: readonly (Omit<HashSchemeRecord, "affixes"> & {
    readonly wrapped: string | null;
    readonly wrapKeyId: string | null;
  })[];
  readonly hmacKeys: readonly (Omit<HmacKeyRecord, "wrapped" | "createTime"> & {
    readonly wrapped: string;
    readonly createTime: string;
  })[];
  readonly prefixLengths: readonly number[];
}

/** Reads everything by one statement, and so of one moment, with the identity of the server. */
export async function readHashing(database: Database) {
  const rows = await database.run(
    (sql) => sql<HashingRow[]>`
      SELECT ${serverId(sql)} AS server,
        (SELECT coalesce(json_agg(one ORDER BY "schemeId"), '[]') FROM (
          SELECT scheme_id AS "schemeId", slot, algorithm, hmac_key_id AS "hmacKeyId", encode(wrapped_affixes, 'hex') AS wrapped,
            wrap_key_id AS "wrapKeyId" FROM hash_schemes
        ) AS one) AS schemes,
        (SELECT coalesce(json_agg(one), '[]') FROM (
          SELECT hmac_key_id AS "hmacKeyId", encode(wrapped_key, 'hex') AS wrapped, wrap_key_id AS "wrapKeyId", create_time AS "createTime",
            created_by AS "createdBy" FROM hmac_keys
        ) AS one) AS hmac_keys,
        (SELECT coalesce(json_agg(length ORDER BY length), '[]') FROM hash_prefix_lengths) AS prefix_lengths`,
    "hash_schemes.read",
  );
  const { server, schemes, hmacKeys, prefixLengths } = firstRow(rows);
  const stored: StoredHashing = {
    schemes: schemes.map(({ wrapped, wrapKeyId, ...scheme }) => ({
      ...scheme,
      affixes: wrapped === null || wrapKeyId === null ? null : { wrapped: Buffer.from(wrapped, "hex"), wrapKeyId },
    })),
    hmacKeys: hmacKeys.map(({ wrapped, createTime, ...key }) => ({
      ...key,
      wrapped: Buffer.from(wrapped, "hex"),
      createTime: parseTime(createTime),
    })),
    prefixLengths,
  };
  return { server, stored };
}

const MAX_PREFIX_LENGTHS = 4;

/** Returns whether the length is stored; false if no slot is free. Of two servers that take the same slot at once, one tries the next. */
async function addPrefixLength(sql: Sql, length: number): Promise<boolean> {
  for (let attempt = 0; attempt < MAX_PREFIX_LENGTHS; attempt++) {
    await sql`
      INSERT INTO hash_prefix_lengths (length, slot)
      SELECT ${length}, min(free) FROM generate_series(1, ${MAX_PREFIX_LENGTHS}::int) AS free
      WHERE NOT EXISTS (SELECT FROM hash_prefix_lengths WHERE slot = free) HAVING count(*) > 0
      ON CONFLICT DO NOTHING RETURNING ${ownSession(sql)}`;
    const [row] = await sql`SELECT FROM hash_prefix_lengths WHERE length = ${length} AND ${ownSession(sql)}`;
    if (row !== undefined) return true;
  }
  return false;
}

/**
 * Removes what no key has, unless it is new: its first key may be about to be imported. Deletes nothing if there is nothing to delete,
 * because every deletion is notified. A key that was imported since keeps its scheme, by a trigger, and then all others are kept too, until
 * the next time.
 */
async function removeUnused(sql: Sql): Promise<NewUnused> {
  const schemeIds = await removeUnusedOf(sql, "hash_schemes", "scheme_id", "hash_scheme_id");
  const lengths = await removeUnusedOf(sql, "hash_prefix_lengths", "length", "hash_prefix_length");
  return { schemeIds, hasLength: lengths.length > 0 };
}

/** Removes the rows of a table whose column `id` no key has in its column `reference`. Returns the ids of the rows that are too new. */
async function removeUnusedOf(sql: Sql, table: string, id: string, reference: string): Promise<number[]> {
  const unused = await sql<{ id: number; isOld: boolean }[]>`
    SELECT ${sql(id)} AS id, create_time < now() - interval '2 seconds' AS is_old FROM ${sql(table)}
    WHERE (SELECT key_id FROM api_keys WHERE ${sql(reference)} = ${sql(id)} LIMIT 1) IS NULL AND ${ownSession(sql)}`;
  const old = unused.filter(({ isOld }) => isOld).map((row) => String(row.id));
  if (old.length > 0)
    await unlessReferenced(
      () => sql`DELETE FROM ${sql(table)} WHERE ${sql(id)} = ANY (${old}::text[]::int[]) AND ${ownSession(sql)}`,
    );
  return unused.filter(({ isOld }) => !isOld).map((row) => row.id);
}

/** Returns null if a row that is deleted has been referenced meanwhile, or one that is referenced has been deleted. */
async function unlessReferenced<T>(change: () => PromiseLike<T>): Promise<T | null> {
  try {
    return await change();
  } catch (error) {
    if (isForeignKeyViolation(error)) return null;
    throw error;
  }
}
