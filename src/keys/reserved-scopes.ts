import { ADMIN_SCOPE, RESERVED_SCOPE_PREFIX, withParts } from "../domain/admin-scopes.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { isSubset } from "../domain/visibility.ts";

/** Returns the reserved scopes that a key may have for the principal to create or change it; the other scopes do not matter. */
export function reservedGrants({ method, scopes }: Principal): "all" | readonly string[] {
  // The holder of a key's own secret may revoke it regardless of its scopes (`selfRevoke`).
  return method === "secret" || scopes.includes(ADMIN_SCOPE) ? "all" : withParts(scopes);
}

/** Throws `CALLER_NOT_PERMITTED` if these are the scopes of a key that the principal may not create or change. */
export function requireReservedScopes(scopes: readonly string[], principal: Principal): void {
  const grants = reservedGrants(principal);
  if (grants === "all") return;
  const scope = scopes.find((one) => isReserved(one) && !grants.includes(one));
  if (scope !== undefined) throw notPermitted(`a key with the scope ${scope} needs a caller that holds it`, { scope });
}

/**
 * Throws `CALLER_NOT_PERMITTED` if the principal may not create or change this key, which it may know of: because of its reserved scopes,
 * or because a restricted caller would have, by the key, rights over other actors than its own. `postgres/keys/handled-by.ts` is the same in SQL.
 */
export function requireHandled(
  { scopes, restrictedToActorIds }: Pick<ApiKey, "scopes" | "restrictedToActorIds">,
  principal: Principal,
): void {
  requireReservedScopes(scopes, principal);
  const { actorIds } = principal.restrictions;
  const scope = scopes.find(isReserved);
  if (actorIds === null || scope === undefined) return;
  if (restrictedToActorIds !== null && restrictedToActorIds.length > 0 && isSubset(restrictedToActorIds, actorIds))
    return;
  const message = `a key with the scope ${scope} needs restricted_to_actor_ids, with actors of the caller only`;
  throw notPermitted(message, { scope });
}

/** Throws `CALLER_NOT_PERMITTED` if the principal may not create keys of this actor. */
export function requireActor(actorId: string, { restrictions: { actorIds } }: Principal): void {
  if (actorIds === null || actorIds.includes(actorId)) return;
  throw notPermitted("actor_id is not an actor to which the caller is restricted", { field: "actor_id" });
}

/** Reports whether a scope is a right over Keyhold. */
export function isReserved(scope: string): boolean {
  return scope.startsWith(RESERVED_SCOPE_PREFIX);
}

function notPermitted(message: string, metadata: Readonly<Record<string, string>>): KeyholdError {
  return new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata });
}
