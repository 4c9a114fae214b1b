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
      return candidates.filter((row) => row !== undefined).map(toVerifiable);
    });
  };
}

/** Each condition has one index that it can use (migration 0006). */
function findRows(sql: Sql, ids: readonly string[], digests: readonly string[]): PromiseLike<VerifiableRow[]> {
  const byDigest = sql`ARRAY (SELECT key_id FROM raw_key_digests WHERE digest = ANY ${byteArray(sql, digests)})`;
  return sql<VerifiableRow[]>`
    SELECT ${sql(VERIFIABLE_COLUMNS)} FROM api_keys
    WHERE key_id = ANY (${[...ids]}::uuid[] ${digests.length === 0 ? sql`` : sql`|| ${byDigest}`})`;
}
