import type { Sql } from "postgres";
import { storedReason } from "../../src/postgres/keys/rows.ts";
import type { Row } from "../keys/filter/oracle.ts";

/** When keys are adopted. */
export const NOW_TEXT = "2026-01-31T12:00:00.000000Z";

/** Replaces all keys by these. */
export async function storeRows(sql: Sql, rows: readonly Row[]): Promise<void> {
  await sql`DELETE FROM api_keys`;
  await addRows(sql, rows);
}

export async function addRows(sql: Sql, rows: readonly Row[]): Promise<void> {
  await sql`
    INSERT INTO hash_schemes (scheme_id, slot, algorithm) VALUES (1, 1, 'SHA256') ON CONFLICT DO NOTHING`;
  const records = rows.map(({ adopted, ...row }) => ({
    ...{ ...row, metadata: Object.fromEntries(row.metadata), scopes: [...row.scopes] },
    revocation_reason: row.revocation_reason && storedReason(row.revocation_reason),
    ...{ hash_scheme_id: row.hash_algorithm === null ? null : 1, adopt_time: adopted === true ? NOW_TEXT : null },
  }));
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time,
      last_used_time, rotate_time, revoke_time, disable_time, revocation_reason, created_by, revoked_by, disabled_by, hash_algorithm, hash_scheme_id,
      adopt_time, digest, digest_key_id)
    SELECT key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time,
      last_used_time, rotate_time, revoke_time, disable_time, revocation_reason, created_by, revoked_by, disabled_by, hash_algorithm, hash_scheme_id,
      adopt_time, decode(md5(key_id::text), 'hex'), ''
    FROM jsonb_populate_recordset(NULL::api_keys, ${sql.json(records)})`;
}
