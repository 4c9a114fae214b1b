import type { Sql } from "postgres";
import type { FindKeys } from "../verify/reader.ts";
import { byteArray, hex } from "./bytes.ts";
import type { Database } from "./pool.ts";
import { STORED_KEY_COLUMNS, type StoredKeyRow, toStoredKey } from "./rows.ts";

/** Finds keys for verification: any number of look-ups by one statement. */
export function createFindKeys(database: Database): FindKeys {
  return async (lookups) => {
    const ids = lookups.flatMap((lookup) => lookup.keyId ?? []);
    const digests = lookups.flatMap((lookup) => lookup.digests.map(hex));
    const rows = await database.run((sql) => findRows(sql, ids, digests));
    const byId = new Map(rows.map((row) => [row.key_id, row]));
    const byDigest = new Map(rows.flatMap((row) => (row.kind === "imported" ? [[hex(row.digest), row] as const] : [])));
    return lookups.map(({ keyId, digests }) => {
      const candidates = [
        keyId === null ? undefined : byId.get(keyId),
        ...digests.map((digest) => byDigest.get(hex(digest))),
      ];
      const row = candidates.find((candidate) => candidate !== undefined);
      return row === undefined ? null : toStoredKey(row);
    });
  };
}

/** Two plain conditions where one would do would keep the planner from the index of either. */
function findRows(sql: Sql, ids: readonly string[], digests: readonly string[]): PromiseLike<StoredKeyRow[]> {
  const byId = sql`SELECT ${sql(STORED_KEY_COLUMNS)} FROM api_keys WHERE key_id = ANY (${[...ids]}::uuid[])`;
  const byDigest = sql`
    SELECT ${sql(STORED_KEY_COLUMNS)} FROM api_keys WHERE kind = 'imported' AND digest = ANY ${byteArray(sql, digests)}`;
  if (digests.length === 0) return sql<StoredKeyRow[]>`${byId}`;
  if (ids.length === 0) return sql<StoredKeyRow[]>`${byDigest}`;
  return sql<StoredKeyRow[]>`${byId} UNION ALL ${byDigest}`;
}
