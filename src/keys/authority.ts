import { KeyholdError } from "../domain/errors.ts";

/**
 * Scopes that begin so are rights over Keyhold itself. A key that holds one may be made, changed, rotated, revoked or deleted
 * only by someone who holds it too: else a right to manage keys would be a right to everything.
 */
export const RESERVED_SCOPE_PREFIX = "keyhold:";

/** The rights over Keyhold that the caller of an operation holds. */
export interface Authority {
  /** Every reserved scope, or those listed. */
  readonly grants: "all" | readonly string[];
}

export const fullAuthority: Authority = { grants: "all" };

/** Reserved scopes among these that the authority lacks. */
function missing(scopes: readonly string[], { grants }: Authority): string[] {
  if (grants === "all") return [];
  return scopes.filter((scope) => scope.startsWith(RESERVED_SCOPE_PREFIX) && !grants.includes(scope));
}

/** Refuses a caller that would give or handle reserved scopes it does not hold. */
export function requireAuthority(scopes: readonly string[], authority: Authority): void {
  const [scope] = missing(scopes, authority);
  if (scope === undefined) return;
  throw new KeyholdError("CALLER_NOT_PERMITTED", `a key with the scope ${scope} needs a caller that holds it`, {
    metadata: { scope },
  });
}
