import type { Fragment, Sql } from "postgres";
import { RESERVED_SCOPE_PREFIX } from "../../domain/admin-scopes.ts";
import type { Principal } from "../../domain/principal.ts";
import type { KeyUpdate } from "../../keys/ports.ts";

/** Returns the condition `requireShorterLife` for a row as it is after an update, and after its adoption. */
export function shorterLived(sql: Sql, { expireTime: end }: Principal, { scopes, expiry }: KeyUpdate = {}): Fragment {
  if (end === undefined) return sql`true`;
  const expireTime = expiry === undefined ? finalExpireTime(sql) : sql`${expiry.time}::timestamptz`;
  const after = scopes === undefined ? sql`scopes` : sql`${[...scopes]}::text[]`;
  return sql`(coalesce(${expireTime} <= ${end}, false)
    OR NOT EXISTS (SELECT FROM unnest(${after}) AS scope WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX})))`;
}

/** A key with a time by which it must be adopted may live longer after that. */
function finalExpireTime(sql: Sql): Fragment {
  return sql`CASE WHEN adopt_before_time IS NULL THEN expire_time ELSE adopted_expire_time END`;
}
