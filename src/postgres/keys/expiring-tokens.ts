import { ADMIN_SCOPES } from "../../domain/admin-scopes.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** An admin token, such as that of a gateway, that is in use and expires soon, or was in use until it expired. */
export interface ExpiringToken {
  readonly keyId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expireTime: Date;
}

const MAX_TOKENS = 100;

/** As in the predicate of the index (0021). */
const OVER_KEYHOLD = `scopes && '{${ADMIN_SCOPES.join(",")}}'`;

/**
 * Finds admin tokens that expire within 14 days, or did so in the last 14, the first to expire first. A token that nobody has used for two
 * days is not among them, since it is replaced or forgotten.
 */
export function findExpiringTokens(database: Database, now: Date): Promise<ExpiringToken[]> {
  return database.run(
    (sql) => sql<ExpiringToken[]>`
      SELECT key_id AS "keyId", name, scopes, expire_time AS "expireTime" FROM api_keys
      WHERE ${ownSession(sql)} AND revoke_time IS NULL AND ${sql.unsafe(OVER_KEYHOLD)} AND kind = 'issued' AND disable_time IS NULL
        AND expire_time BETWEEN ${now}::timestamptz - interval '14 days' AND ${now}::timestamptz + interval '14 days'
        AND last_used_time > least(expire_time, ${now}) - interval '2 days'
      ORDER BY expire_time LIMIT ${MAX_TOKENS}`,
  );
}
