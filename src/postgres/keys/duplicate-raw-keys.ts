import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Two imported keys that may have the same raw key. */
export interface SuspectedDuplicate {
  readonly older: string;
  readonly newer: string;
}

export const MAX_SUSPECTED = 100;

/**
 * Finds imported keys with the same actor and hint (short raw keys have none: with the same name) that were stored under different root
 * secrets, where neither has a digest under the other's root secret; such a digest would show that they differ. Only the raw key itself
 * would prove that they are equal. Scans the whole table unless all imported keys are stored under one root secret.
 */
export function findSuspectedDuplicates(database: Database): Promise<SuspectedDuplicate[]> {
  return database.run(
    (sql) => sql<SuspectedDuplicate[]>`
      WITH likeness AS (
        SELECT actor_id, hint, CASE WHEN hint = '' THEN name ELSE '' END AS short_name FROM api_keys
        WHERE kind = 'imported'
          AND (SELECT min(digest_key_id) <> max(digest_key_id) FROM api_keys WHERE kind = 'imported')
        GROUP BY 1, 2, 3 HAVING min(digest_key_id) <> max(digest_key_id)
      ), suspects AS (
        SELECT min(key_id::text) AS key_id, actor_id, hint, short_name, digest_key_id,
          jsonb_path_query_array(other_digests, '$[*].digest_key_id') AS others, bool_and(revoke_time IS NOT NULL) AS is_revoked
        FROM api_keys JOIN likeness USING (actor_id, hint)
        WHERE kind = 'imported' AND (hint <> '' OR name = short_name)
        GROUP BY actor_id, hint, short_name, digest_key_id, others
      )
      SELECT older.key_id AS older, newer.key_id AS newer
      FROM suspects AS older JOIN suspects AS newer USING (actor_id, hint, short_name)
      WHERE ${ownSession(sql)} AND older.key_id < newer.key_id AND older.digest_key_id <> newer.digest_key_id
        AND NOT coalesce(older.others ? newer.digest_key_id, false)
        AND NOT coalesce(newer.others ? older.digest_key_id, false)
        AND NOT (older.is_revoked AND newer.is_revoked)
      ORDER BY older, newer LIMIT ${MAX_SUSPECTED}`,
  );
}
