import type { Fragment, Sql } from "postgres";
import { RESERVED_SCOPE_PREFIX } from "../domain/admin-scopes.ts";
import type { Principal } from "../domain/principal.ts";
import type { KeyUpdate } from "../keys/store.ts";

/** Returns the condition `requireShorterLife` for a row as it is after an update. */
export function shorterLived(sql: Sql, { expireTime: end }: Principal, { scopes, expiry }: KeyUpdate = {}): Fragment {
  if (end === undefined) return sql`true`;
  const expireTime = expiry === undefined ? sql`expire_time` : sql`${expiry.time}::timestamptz`;
  const after = scopes === undefined ? sql`scopes` : sql`${[...scopes]}::text[]`;
  return sql`(coalesce(${expireTime} <= ${end}, false)
    OR NOT EXISTS (SELECT FROM unnest(${after}) AS scope WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX})))`;
}
