import { suggestion } from "../lib/nearest-name.ts";
import { invalidArguments } from "./errors.ts";

/** The right to everything, this service's own keys included. */
export const ADMIN_SCOPE = "keyhold:admin";

const WRITE_SCOPE = "keyhold:keys.write";

/** The parts of `keyhold:keys.write`, which permits what they permit together. */
const WRITE_PARTS = [
  "keyhold:keys.issue",
  "keyhold:keys.import",
  "keyhold:keys.update",
  "keyhold:keys.rotate",
  "keyhold:keys.revoke",
  "keyhold:keys.disable",
  "keyhold:keys.delete",
] as const;

/** Rights over Keyhold, as scopes of an admin token or of an OIDC access token (docs/admin-authentication.md). */
export const ADMIN_SCOPES = [
  ADMIN_SCOPE,
  "keyhold:keys.read",
  WRITE_SCOPE,
  ...WRITE_PARTS,
  "keyhold:verify",
  "keyhold:derive",
  "keyhold:audit",
  "keyhold:webhooks",
  "keyhold:key-pages",
] as const;

export type AdminScope = (typeof ADMIN_SCOPES)[number];

export function isAdminScope(scope: string): scope is AdminScope {
  return ADMIN_SCOPES.some((adminScope) => adminScope === scope);
}

/**
 * The prefix of scopes that are rights over Keyhold itself. Only a caller that holds such a scope may create, change, rotate, revoke or
 * delete a key that has it: otherwise the right to manage keys would include every right.
 */
export const RESERVED_SCOPE_PREFIX = "keyhold:";

/** Throws `INVALID_ARGUMENT` naming `field` if a scope has the reserved prefix and is none that Keyhold knows: it would permit nothing. */
export function checkReservedScopes(scopes: readonly string[], field: string): void {
  const isUnknown = (scope: string) => scope.startsWith(RESERVED_SCOPE_PREFIX) && !isAdminScope(scope);
  const violations = scopes.flatMap((scope, index) => {
    if (!isUnknown(scope)) return [];
    const description = `is not a Keyhold scope${suggestion(scope, ADMIN_SCOPES) || `: ${ADMIN_SCOPES.join(", ")}`}`;
    return [{ field: `${field}[${index}]`, description, reason: "VALUE_NOT_ALLOWED" as const }];
  });
  if (violations.length > 0) throw invalidArguments(violations);
}

/**
 * What a call needs: nothing, a caller with any scope over Keyhold (`authenticated`), or a caller with this scope or one that includes it. A
 * `probe` is not rate-limited either.
 */
export type Policy = "public" | "probe" | "authenticated" | AdminScope;

/** Reports whether a caller with these scopes satisfies a policy. */
export function isPermitted(scopes: readonly string[], policy: Policy): boolean {
  if (policy === "public" || policy === "probe") return true;
  return policy === "authenticated" ? scopes.some(isAdminScope) : includesScope(scopes, policy);
}

/** Returns the scopes that include this one: itself, `keyhold:keys.write` for its parts, and `keyhold:admin`, the least first. */
export function scopesIncluding(scope: AdminScope): readonly AdminScope[] {
  if (scope === ADMIN_SCOPE) return [ADMIN_SCOPE];
  return isWritePart(scope) ? [scope, WRITE_SCOPE, ADMIN_SCOPE] : [scope, ADMIN_SCOPE];
}

/**
 * Returns the scopes with the parts of each. The sum of all parts is not `keyhold:keys.write`, which a later release may extend.
 */
export function withParts(scopes: readonly string[]): readonly string[] {
  return scopes.includes(WRITE_SCOPE) ? [...scopes, ...WRITE_PARTS] : scopes;
}

/** Reports whether scopes include this one. */
export function includesScope(scopes: readonly string[], scope: AdminScope): boolean {
  if (scopes.includes(scope) || scopes.includes(ADMIN_SCOPE)) return true;
  return isWritePart(scope) && scopes.includes(WRITE_SCOPE);
}

/** Reports whether a policy is for calls that change keys, or what decides over them. */
export function isForChanges(policy: Policy): boolean {
  return CHANGING_SCOPES.some((scope) => scope === policy);
}

const CHANGING_SCOPES: readonly AdminScope[] = [ADMIN_SCOPE, ...WRITE_PARTS, "keyhold:webhooks", "keyhold:key-pages"];

function isWritePart(scope: AdminScope): boolean {
  return WRITE_PARTS.some((part) => part === scope);
}
