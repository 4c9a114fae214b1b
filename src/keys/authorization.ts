import { ADMIN_SCOPE, RESERVED_SCOPE_PREFIX, withParts } from "../domain/admin-scopes.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { ApiKey } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { isSubset } from "../domain/visibility.ts";

/*
 * Which keys a principal may manage, and which it may grant to their holders. Every condition throws `CALLER_NOT_PERMITTED`.
 * `postgres/keys/authorization.ts` has the same conditions in SQL, under the same names; `test/postgres/authorization.test.ts` holds both to
 * one table.
 */

/** Reports whether a scope is a right over Keyhold. */
export function isReserved(scope: string): boolean {
  return scope.startsWith(RESERVED_SCOPE_PREFIX);
}

/** Returns the reserved scopes that a key may have for the principal to manage it; the other scopes do not matter. */
export function manageableScopes({ method, scopes }: Principal): "all" | readonly string[] {
  // The owner of keys manages none that has rights over Keyhold.
  if (method === "key-page") return [];
  // The holder of a key's own secret may revoke it regardless of its scopes (`selfRevoke`).
  return method === "secret" || scopes.includes(ADMIN_SCOPE) ? "all" : withParts(scopes);
}

/** Requires that the principal may manage a key with these scopes. */
export function assertManageableScopes(scopes: readonly string[], principal: Principal): void {
  const manageable = manageableScopes(principal);
  if (manageable === "all") return;
  const scope = scopes.find((candidate) => isReserved(candidate) && !manageable.includes(candidate));
  if (scope !== undefined) throw notPermitted(`managing a key with the scope ${scope} requires that scope`, { scope });
}

/** Requires that the principal may create keys of this actor. */
export function assertActorAllowed(actorId: string, { restrictions: { actorIds } }: Principal): void {
  if (actorIds === null || actorIds.includes(actorId)) return;
  throw notPermitted("actor_id must be one of the actors to which the caller is restricted", { field: "actor_id" });
}

/**
 * Requires that the principal may create or change a key that is visible to it (`isVisible`): it holds the key's reserved scopes and, if it
 * is restricted to actors, the key gives no rights over other actors.
 */
export function assertCanManage(
  { scopes, restrictedToActorIds }: Pick<ApiKey, "scopes" | "restrictedToActorIds">,
  principal: Principal,
): void {
  assertManageableScopes(scopes, principal);
  const { actorIds } = principal.restrictions;
  const scope = scopes.find(isReserved);
  if (actorIds === null || scope === undefined) return;
  if (restrictedToActorIds !== null && restrictedToActorIds.length > 0 && isSubset(restrictedToActorIds, actorIds))
    return;
  const message = `a key with the scope ${scope} must list in restricted_to_actor_ids only actors to which the caller is restricted`;
  throw notPermitted(message, { scope });
}

/**
 * Requires that a key, as it is after a change, gives no right over Keyhold for longer than the grantor's own credential is valid. Otherwise
 * a credential that is to expire could be made to last.
 */
export function assertExpiresWithin(
  { scopes, expireTime, adoptBeforeTime = null }: Pick<ApiKey, "scopes" | "expireTime"> & Partial<ApiKey>,
  { expireTime: end }: Principal,
): void {
  // A key with a time by which it must be adopted may live longer after that.
  if (end === undefined || (expireTime !== null && adoptBeforeTime === null && expireTime <= end)) return;
  const scope = scopes.find(isReserved);
  if (scope === undefined) return;
  const time = end.toISOString();
  const message = `a key with the scope ${scope} must expire no later than the credential of the caller, at ${time}`;
  throw notPermitted(message, { scope, expire_time: time });
}

/** Requires that the grantor may enable a holder to use the key, by creating, updating, rotating or enabling it. */
export function assertCanGrant(key: ApiKey, grantor: Principal): void {
  assertCanManage(key, grantor);
  assertExpiresWithin(key, grantor);
  assertAllowedScopes(key, grantor);
}

/** Requires that a key has only scopes that a session of the key page allows. */
export function assertAllowedScopes(
  { scopes }: Pick<ApiKey, "scopes">,
  { restrictions: { keyPage } }: Pick<Principal, "restrictions">,
): void {
  const scope = keyPage && scopes.find((candidate) => !keyPage.allowedScopes.includes(candidate));
  if (scope !== undefined) throw notPermitted(`the key page does not allow the scope ${scope}`, { scope });
}

/** Requires that a new key, created at `now` (milliseconds), has what a session of the key page may set. */
export function assertKeyPageAllows(key: ApiKey, { restrictions: { keyPage } }: Principal, now: number): void {
  if (keyPage === undefined) return;
  const { metadata, rateLimits, quotas, restrictedToActorIds, expireTime } = key;
  const others = {
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...{ rate_limits: rateLimits, quotas, restricted_to_actor_ids: restrictedToActorIds },
  };
  for (const [field, value] of Object.entries(others))
    if (value !== null) throw notPermitted(`the key page does not allow ${field}`, { field });
  const { maxTtl } = keyPage;
  if (maxTtl === null || (expireTime !== null && expireTime.getTime() <= now + maxTtl)) return;
  throw notPermitted(`the key page allows a ttl of at most ${maxTtl / 1000} s`, { field: "ttl" });
}

function notPermitted(message: string, metadata: Readonly<Record<string, string>>): KeyholdError {
  return new KeyholdError("CALLER_NOT_PERMITTED", message, { metadata });
}
