import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** How many secrets that still work were made under a server key of the label `secret-digest`. */
export interface DigestKeyUse {
  readonly digestKeyId: string;
  /** Issued keys whose secret it is. */
  readonly issued: number;
  readonly imported: number;
  /** Older secrets in their grace period. */
  readonly inGrace: number;
}

/** Counts them over all keys that are neither revoked nor expired at `now`: the whole table is read. */
export function countDigestKeys(database: Database, now: Date): Promise<DigestKeyUse[]> {
  return database.run(
    (sql) => sql<DigestKeyUse[]>`
      WITH live AS (
        SELECT kind, digest_key_id, previous_secrets FROM api_keys
        WHERE ${ownSession(sql)} AND revoke_time IS NULL AND (expire_time IS NULL OR expire_time > ${now})
      ), secrets AS (
        SELECT kind, digest_key_id FROM live
        UNION ALL
        SELECT 'grace', secret ->> 'digest_key_id' FROM live, jsonb_array_elements(previous_secrets) AS secret
        WHERE (secret ->> 'expire_time')::timestamptz > ${now}
      )
      SELECT digest_key_id, count(*) FILTER (WHERE kind = 'issued')::int AS issued,
        count(*) FILTER (WHERE kind = 'imported')::int AS imported, count(*) FILTER (WHERE kind = 'grace')::int AS in_grace
      FROM secrets GROUP BY digest_key_id ORDER BY digest_key_id`,
  );
}

/** Records that a server has this root secret as its current one; `digestKeyId` is the id of its server key for digests. */
export function recordRootSecretUse(database: Database, digestKeyId: string): Promise<void> {
  return database.run(async (sql) => {
    await sql`INSERT INTO used_root_secrets (digest_key_id) VALUES (${digestKeyId}) ON CONFLICT DO NOTHING RETURNING ${ownSession(sql)}`;
  }, "used_root_secrets.insert");
}

/** Returns the ids of the root secrets that were ever the current one of a server. */
export function listUsedRootSecrets(database: Database): Promise<ReadonlySet<string>> {
  return database.run(async (sql) => {
    const rows = await sql<
      { digestKeyId: string }[]
    >`SELECT digest_key_id FROM used_root_secrets WHERE ${ownSession(sql)}`;
    return new Set(rows.map(({ digestKeyId }) => digestKeyId));
  }, "used_root_secrets.list");
}
