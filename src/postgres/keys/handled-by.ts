import type { Fragment, Sql } from "postgres";
import { RESERVED_SCOPE_PREFIX } from "../../domain/admin-scopes.ts";
import type { Principal, Restrictions } from "../../domain/principal.ts";
import { reservedGrants } from "../../keys/reserved-scopes.ts";

/** `isVisible`, for a row of `api_keys`. */
export function visibleTo(sql: Sql, { actorIds }: Restrictions): Fragment {
  if (actorIds === null) return sql`true`;
  return sql`(actor_id = ANY (${[...actorIds]}::text[]) AND ${namesOnly(sql, actorIds)})`;
}

/** The condition that a key is not restricted to others than these actors. */
export function namesOnly(sql: Sql, actorIds: readonly string[]): Fragment {
  return sql`(restricted_to_actor_ids IS NULL OR restricted_to_actor_ids <@ ${[...actorIds]}::text[])`;
}

/**
 * The condition that the principal may know of a row and change it, by the values that the row has when it is changed: `isVisible` and
 * `requireHandled`. `scopes` are the new ones, if they are changed.
 */
export function handledBy(sql: Sql, principal: Principal, scopes: readonly string[] = []): Fragment {
  return sql`(${visibleTo(sql, principal.restrictions)} AND ${grantedBy(sql, principal)} AND ${confinedBy(sql, principal, scopes)})`;
}

function grantedBy(sql: Sql, principal: Principal): Fragment {
  const grants = reservedGrants(principal);
  if (grants === "all") return sql`true`;
  return sql`NOT EXISTS (
    SELECT FROM unnest(scopes) AS scope
    WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX}) AND scope <> ALL (${[...grants]}::text[]))`;
}

/** A key with reserved scopes, before or after the change, must be confined to the actors of a restricted caller. */
function confinedBy(sql: Sql, { restrictions: { actorIds } }: Principal, scopes: readonly string[]): Fragment {
  if (actorIds === null) return sql`true`;
  return sql`
    (coalesce(cardinality(restricted_to_actor_ids), 0) > 0 AND restricted_to_actor_ids <@ ${[...actorIds]}::text[]
      OR NOT EXISTS (
        SELECT FROM unnest(scopes || ${[...scopes]}::text[]) AS scope WHERE starts_with(scope, ${RESERVED_SCOPE_PREFIX})))`;
}
