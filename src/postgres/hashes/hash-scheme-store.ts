import type { Sql } from "postgres";
import type { ServerId, ServerObserver } from "../../cluster/server-id.ts";
import type { HashAlgorithm } from "../../domain/raw-key-hash.ts";
import type { HashSchemeStore, HmacKeyRecord, NewUnused, RewrapStore, StoredHashing } from "../../hashing/store.ts";
import { isForeignKeyViolation } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { serverId } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { parseTime } from "../connection/value-types.ts";

/** The databases of the store: `reads` for what verifications wait for, `lists` for what may read many keys. */
export type HashSchemeDatabases = Readonly<Record<"database" | "lists" | "reads", Database>>;

/**
 * Creates the store of hash schemes in PostgreSQL. What is added is notified to every node before a key with it is: the barrier of the key's
 * import covers it.
 */
export function createHashSchemeStore(
  { database, lists, reads }: HashSchemeDatabases,
  feed: ServerObserver,
): HashSchemeStore & RewrapStore {
  return {
    read: async () => {
      const expected = feed.server;
      const { server, stored } = await readHashing(reads);
      feed.requireServer(server, expected);
      return stored;
    },
    addScheme: async ({ schemeId, slot, algorithm, hmacKeyId, affixes }) => {
      const row = { schemeId, slot, algorithm, hmacKeyId, wrappedAffixes: affixes?.wrapped ?? null };
      const values = { ...row, wrapKeyId: affixes?.wrapKeyId ?? null };
      const added = await unlessReferenced(() =>
        database.run(
          (sql) => sql`
            INSERT INTO hash_schemes ${sql(values)} ON CONFLICT DO NOTHING RETURNING scheme_id, ${ownSession(sql)}`,
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

interface SchemeJson {
  readonly scheme_id: number;
  readonly slot: number;
  readonly algorithm: HashAlgorithm;
  readonly hmac_key_id: string | null;
  /** Hexadecimal. */
  readonly wrapped_affixes: string | null;
  readonly wrap_key_id: string | null;
}

interface HashingRow {
  readonly server: ServerId;
  readonly schemes: readonly SchemeJson[];
  readonly hmacKeys: readonly {
    readonly hmac_key_id: string;
    readonly wrapped_key: string;
    readonly wrap_key_id: string;
    readonly create_time: string;
    readonly created_by: string;
  }[];
  readonly prefixLengths: readonly number[];
}

/** Reads everything by one statement, and so of one moment, with the identity of the server. */
export async function readHashing(
  database: Database,
): Promise<{ readonly server: ServerId; readonly stored: StoredHashing }> {
  const rows = await database.run(
    (sql) => sql<HashingRow[]>`
      SELECT ${serverId(sql)} AS server,
        (SELECT coalesce(json_agg(one ORDER BY scheme_id), '[]') FROM (
          SELECT scheme_id, slot, algorithm, hmac_key_id, encode(wrapped_affixes, 'hex') AS wrapped_affixes, wrap_key_id FROM hash_schemes
        ) AS one) AS schemes,
        (SELECT coalesce(json_agg(one), '[]') FROM (
          SELECT hmac_key_id, encode(wrapped_key, 'hex') AS wrapped_key, wrap_key_id, create_time, created_by FROM hmac_keys
        ) AS one) AS hmac_keys,
        (SELECT coalesce(json_agg(length ORDER BY length), '[]') FROM hash_prefix_lengths) AS prefix_lengths`,
    "hash_schemes.read",
  );
  const { server, schemes, hmacKeys, prefixLengths } = firstRow(rows);
  return { server, stored: { schemes: schemes.map(toScheme), hmacKeys: hmacKeys.map(toHmacKey), prefixLengths } };
}

function toScheme({ scheme_id, slot, algorithm, hmac_key_id, wrapped_affixes, wrap_key_id }: SchemeJson) {
  const affixes =
    wrapped_affixes === null || wrap_key_id === null
      ? null
      : { wrapped: Buffer.from(wrapped_affixes, "hex"), wrapKeyId: wrap_key_id };
  return { schemeId: scheme_id, slot, algorithm, hmacKeyId: hmac_key_id, affixes };
}

function toHmacKey(row: HashingRow["hmacKeys"][number]): HmacKeyRecord {
  return {
    hmacKeyId: row.hmac_key_id,
    wrapped: Buffer.from(row.wrapped_key, "hex"),
    wrapKeyId: row.wrap_key_id,
    createTime: parseTime(row.create_time),
    createdBy: row.created_by,
  };
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
 * Removes what no key has, unless it is new: its first key may be about to be imported. Deletes nothing if there is nothing to delete, because
 * every deletion is notified. A key that was imported since keeps its scheme, by a trigger, and then all others are kept too, until the next time.
 */
async function removeUnused(sql: Sql): Promise<NewUnused> {
  const isOld = sql`create_time < now() - interval '2 seconds' AS is_old`;
  const schemes = await sql<{ schemeId: number; isOld: boolean }[]>`
    SELECT scheme_id, ${isOld} FROM hash_schemes
    WHERE (SELECT key_id FROM api_keys WHERE hash_scheme_id = scheme_id LIMIT 1) IS NULL AND ${ownSession(sql)}`;
  const lengths = await sql<{ length: number; isOld: boolean }[]>`
    SELECT length, ${isOld} FROM hash_prefix_lengths
    WHERE (SELECT key_id FROM api_keys WHERE hash_prefix_length = length LIMIT 1) IS NULL AND ${ownSession(sql)}`;
  const ids = schemes.filter((one) => one.isOld).map(({ schemeId }) => `${schemeId}`);
  if (ids.length > 0)
    await unlessReferenced(
      () => sql`DELETE FROM hash_schemes WHERE scheme_id = ANY (${ids}::text[]::int[]) AND ${ownSession(sql)}`,
    );
  const unused = lengths.filter((one) => one.isOld).map(({ length }) => `${length}`);
  if (unused.length > 0)
    await unlessReferenced(
      () =>
        sql`DELETE FROM hash_prefix_lengths WHERE length = ANY (${unused}::text[]::smallint[]) AND ${ownSession(sql)}`,
    );
  const isNew = (one: { readonly isOld: boolean }) => !one.isOld;
  return { schemeIds: schemes.filter(isNew).map(({ schemeId }) => schemeId), hasLength: lengths.some(isNew) };
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
