import type { SerializableParameter } from "postgres";
import type { Principal } from "../../domain/principal.ts";
import { manageableScopes } from "../../keys/authorization.ts";
import { type Tag, text } from "../connection/fragments.ts";

/*
 * The conditions of `domain/visibility.ts` and `keys/authorization.ts` on a row of `api_keys`, under the same names. A change tests them by
 * the values that the row has when it is locked, and by the new values of an update. `test/postgres/authorization.test.ts` holds both to one
 * table.
 */

/** Returns the values of a principal that the conditions test; null: no restriction. */
export function valuesOf(principal: Principal) {
  const { restrictions, expireTime = null } = principal;
  const manageable = manageableScopes(principal);
  return {
    actorIds: restrictions.actorIds && [...restrictions.actorIds],
    manageableScopes: manageable === "all" ? null : [...manageable],
    allowedScopes: restrictions.keyPage === undefined ? null : [...restrictions.keyPage.allowedScopes],
    endTime: expireTime,
  };
}

type PrincipalValue = keyof ReturnType<typeof valuesOf>;

/** The same as parameters of a prepared statement. */
export const PRINCIPAL = {
  actorIds: "$actorIds",
  manageableScopes: "$manageableScopes",
  allowedScopes: "$allowedScopes",
  endTime: "$endTime",
} as const satisfies Readonly<Record<PrincipalValue, string>>;

type Tested<V extends PrincipalValue> = Readonly<Record<V, SerializableParameter>>;

/** The condition that the principal may know of a key. */
export function isVisible<F>(sql: Tag<F>, { actorIds }: Tested<"actorIds">): F {
  return sql`(${actorIds}::text[] IS NULL OR (actor_id = ANY (${actorIds}::text[]) AND ${isRestrictedWithin(sql, actorIds)}))`;
}

/** The condition that a key is not restricted to other actors than these. */
export function isRestrictedWithin<F>(sql: Tag<F>, actorIds: SerializableParameter): F {
  return sql`(restricted_to_actor_ids IS NULL OR restricted_to_actor_ids <@ ${actorIds}::text[])`;
}

/** The condition that the principal may know of a key and change it, before and after an update that sets `newScopes`, unless they are null. */
export function canManage<F>(
  sql: Tag<F>,
  principal: Tested<"actorIds" | "manageableScopes">,
  newScopes: SerializableParameter = null,
): F {
  return sql`(${isVisible(sql, principal)} AND ${hasManageableScopes(sql, principal)} AND ${isConfined(sql, principal, newScopes)})`;
}

/** The condition that the grantor may enable a holder to use the key, as it is after an update. */
export function canGrant(newScopes: string | null = null, expireTime = FINAL_EXPIRE_TIME): string {
  return text`${canManage(text, PRINCIPAL, newScopes)}
    AND ($allowedScopes::text[] IS NULL OR coalesce(${newScopes}::text[], scopes) <@ $allowedScopes) AND ($endTime::timestamptz IS NULL OR coalesce(${expireTime} <= $endTime, false)
    OR NOT EXISTS (SELECT FROM unnest(coalesce(${newScopes}::text[], scopes)) AS scope WHERE ${isReserved(text)}))`;
}

/** The new scopes of an update are tested before the statement (`assertManageableScopes`). */
function hasManageableScopes<F>(sql: Tag<F>, { manageableScopes }: Tested<"manageableScopes">): F {
  return sql`(${manageableScopes}::text[] IS NULL
    OR NOT EXISTS (SELECT FROM unnest(scopes) AS scope WHERE ${isReserved(sql)} AND scope <> ALL (${manageableScopes}::text[])))`;
}

/** A key with reserved scopes, before or after the change, must be confined to the actors of a restricted principal. */
function isConfined<F>(sql: Tag<F>, { actorIds }: Tested<"actorIds">, newScopes: SerializableParameter): F {
  return sql`(${actorIds}::text[] IS NULL
    OR (coalesce(cardinality(restricted_to_actor_ids), 0) > 0 AND restricted_to_actor_ids <@ ${actorIds}::text[])
    OR NOT EXISTS (SELECT FROM unnest(scopes || ${newScopes}::text[]) AS scope WHERE ${isReserved(sql)}))`;
}

/** The condition that a scope begins with `RESERVED_SCOPE_PREFIX`. */
function isReserved<F>(sql: Tag<F>): F {
  return sql`starts_with(scope, 'keyhold:')`;
}

/** When a key expires once it is adopted: one with a time by which it must be adopted may live longer after that. */
export const FINAL_EXPIRE_TIME = text`CASE WHEN adopt_before_time IS NULL THEN expire_time ELSE adopted_expire_time END`;
