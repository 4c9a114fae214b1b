import type { Sql } from "postgres";
import type { FindKeys } from "../verify/reader.ts";
import { byteArray, hex } from "./bytes.ts";
import type { Database } from "./pool.ts";
import { toVerifiable, VERIFIABLE_COLUMNS, type VerifiableRow } from "./rows.ts";

/** Finds keys for verification: any number of look-ups by one statement. */
export function createFindKeys(database: Database): FindKeys {
  return async (lookups) => {
    const ids = lookups.flatMap((lookup) => lookup.keyId ?? []);
    const digests = lookups.flatMap((lookup) => lookup.digests.map(hex));
    const rows = await database.run((sql) => findRows(sql, ids, digests), "keys.find");
    const byId = new Map(rows.map((row) => [row.key_id, row]));
    const byDigest = new Map(rows.flatMap((row) => (row.kind === "imported" ? [[hex(row.digest), row] as const] : [])));
    return lookups.map(({ keyId, digests }) => {
      const candidates = [
        keyId === null ? undefined : byId.get(keyId),
        ...digests.map((digest) => byDigest.get(hex(digest))),
      ];
      const row = candidates.find((candidate) => candidate !== undefined);
      return row === undefined ? null : toVerifiable(row);
    });
  };
}

/** Two plain conditions where one would do would keep the planner from the index of either. */
function findRows(sql: Sql, ids: readonly string[], digests: readonly string[]): PromiseLike<VerifiableRow[]> {
  const byId = sql`SELECT ${sql(VERIFIABLE_COLUMNS)} FROM api_keys WHERE key_id = ANY (${[...ids]}::uuid[])`;
  const byDigest = sql`
    SELECT ${sql(VERIFIABLE_COLUMNS)} FROM api_keys WHERE kind = 'imported' AND digest = ANY ${byteArray(sql, digests)}`;
  if (digests.length === 0) return sql<VerifiableRow[]>`${byId}`;
  if (ids.length === 0) return sql<VerifiableRow[]>`${byDigest}`;
  return sql<VerifiableRow[]>`${byId} UNION ALL ${byDigest}`;
}
