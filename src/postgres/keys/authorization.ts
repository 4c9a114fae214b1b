import type { Fragment, Sql } from "postgres";
import { RESERVED_SCOPE_PREFIX } from "../../domain/admin-scopes.ts";
import type { Principal, Restrictions } from "../../domain/principal.ts";
import { manageableScopes } from "../../keys/authorization.ts";
import type { KeyUpdate } from "../../keys/ports.ts";

/*
 * The conditions of `domain/visibility.ts` and `keys/authorization.ts` on a row of `api_keys`, under the same names. A change tests them by
 * the values that the row has when it is locked, and by the new values of an update. `test/postgres/authorization.test.ts` holds both to one
 * table.
 */

/** The condition that the principal may know of a key. */
export function isVisible(sql: Sql, { actorIds }: Restrictions): Fragment {
  if (actorIds === null) return sql`true`;
  return sql`(actor_id = ANY (${[...actorIds]}::text[]) AND ${isRestrictedWithin(sql, actorIds)})`;
}

/** The condition that a key is not restricted to other actors than these. */
export function isRestrictedWithin(sql: Sql, actorIds: readonly string[]): Fragment {
  return sql`(restricted_to_actor_ids IS NULL OR restricted_to_actor_ids <@ ${[...actorIds]}::text[])`;
}

/** The condition that the principal may know of a key and change it, before and after an update. */
export function canManage(sql: Sql, principal: Principal, { scopes = [] }: KeyUpdate = {}): Fragment {
  return sql`(${isVisible(sql, principal.restrictions)} AND ${hasManageableScopes(sql, principal)} AND ${isConfined(sql, principal, scopes)})`;
}

/** The condition that the grantor may enable a holder to use a key, as it is after an update. */
export function canGrant(sql: Sql, grantor: Principal, update: KeyUpdate = {}): Fragment {
  return sql`${canManage(sql, grantor, update)} AND ${expiresWithin(sql, grantor, update)}`;
}

/** The new scopes of an update are tested before the statement (`assertManageableScopes`). */
function hasManageableScopes(sql: Sql, principal: Principal): Fragment {
  const manageable = manageableScopes(principal);
  if (manageable === "all") return sql`true`;
  return sql`NOT EXISTS (
    SELECT FROM unnest(scopes) AS scope
    WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX}) AND scope <> ALL (${[...manageable]}::text[]))`;
}

/** A key with reserved scopes, before or after the change, must be confined to the actors of a restricted principal. */
function isConfined(sql: Sql, { restrictions: { actorIds } }: Principal, newScopes: readonly string[]): Fragment {
  if (actorIds === null) return sql`true`;
  return sql`
    (coalesce(cardinality(restricted_to_actor_ids), 0) > 0 AND restricted_to_actor_ids <@ ${[...actorIds]}::text[]
      OR NOT EXISTS (
        SELECT FROM unnest(scopes || ${[...newScopes]}::text[]) AS scope WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX})))`;
}

function expiresWithin(sql: Sql, { expireTime: end }: Principal, { scopes, expiry }: KeyUpdate): Fragment {
  if (end === undefined) return sql`true`;
  const expireTime = expiry === undefined ? finalExpireTime(sql) : sql`${expiry.time}::timestamptz`;
  const after = scopes === undefined ? sql`scopes` : sql`${[...scopes]}::text[]`;
  return sql`(coalesce(${expireTime} <= ${end}, false)
    OR NOT EXISTS (SELECT FROM unnest(${after}) AS scope WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX})))`;
}

/** Returns when a key expires once it is adopted: one with a time by which it must be adopted may live longer after that. */
export function finalExpireTime(sql: Sql): Fragment {
  return sql`CASE WHEN adopt_before_time IS NULL THEN expire_time ELSE adopted_expire_time END`;
}
