import { ADMIN_SCOPE, RESERVED_SCOPE_PREFIX, withParts } from "../domain/admin-scopes.ts";
import { KeyholdError } from "../domain/errors.ts";
import type { Principal } from "../domain/principal.ts";

/** Returns the reserved scopes that a key may have for the principal to create or change it; the other scopes do not matter. */
export function reservedGrants({ method, scopes }: Principal): "all" | readonly string[] {
  // The holder of a key's own secret may revoke it regardless of its scopes (`selfRevoke`).
  return method === "secret" || scopes.includes(ADMIN_SCOPE) ? "all" : withParts(scopes);
}

/** Throws `CALLER_NOT_PERMITTED` if these are the scopes of a key that the principal may not create or change. */
export function requireReservedScopes(scopes: readonly string[], principal: Principal): void {
  const grants = reservedGrants(principal);
  if (grants === "all") return;
  const scope = scopes.find((one) => one.startsWith(RESERVED_SCOPE_PREFIX) && !grants.includes(one));
  if (scope === undefined) return;
  throw new KeyholdError("CALLER_NOT_PERMITTED", `a key with the scope ${scope} needs a caller that holds it`, {
    metadata: { scope },
  });
}
