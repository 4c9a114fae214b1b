/**
 * Returns the scopes in a claims set: a string separated by spaces (RFC 8693 §4.2) or an array of strings. `claim` is a claim name, or a path
 * of names joined by dots; a claim with the whole name takes precedence. A missing or other value yields no scopes.
 *
 * @example readScopes({ realm_access: { roles: ["admin"] } }, "realm_access.roles") // ["admin"]
 */
export function readScopes(claims: object, claim: string): string[] {
  const value = claimAt(claims, claim);
  if (typeof value === "string") return value.split(" ").filter((scope) => scope !== "");
  return isTexts(value) ? [...value] : [];
}

/** Returns the value of a claim by its name, or by the path of names joined by dots. */
function claimAt(claims: object, claim: string): unknown {
  return memberOf(claims, claim) ?? claim.split(".").reduce(memberOf, claims);
}

/** Returns an own member of an object; undefined for another value. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Allows keys of every actor. */
const ANY = "*";

/**
 * Returns the actors in a claims set to which a caller is restricted; null: any. The claim is one actor id, or an array of them; `*` among
 * them means any. A missing or other value permits no actor.
 */
export function readActors(claims: object, claim: string): readonly string[] | null {
  const value = claimAt(claims, claim);
  const actorIds = typeof value === "string" ? [value] : isTexts(value) ? value : [];
  if (actorIds.includes(ANY)) return null;
  return [...new Set(actorIds.filter(isStorable))];
}

/** Returns whether an actor or a subject can be one: PostgreSQL would reject a statement with another. */
export function isStorable(id: string): boolean {
  return id !== "" && id.isWellFormed() && !id.includes("\0");
}
