/**
 * Returns the scopes in a claims set: a string separated by spaces (RFC 8693 §4.2) or an array of strings. `claim` is a claim name, or a path
 * of names joined by dots; a claim with the whole name takes precedence. A missing or other value yields no scopes.
 *
 * @example readScopes({ realm_access: { roles: ["admin"] } }, "realm_access.roles") // ["admin"]
 */
export function readScopes(claims: object, claim: string): string[] {
  const value = ownMember(claims, claim) ?? claim.split(".").reduce(ownMember, claims);
  if (typeof value === "string") return value.split(" ").filter((scope) => scope !== "");
  return isTexts(value) ? [...value] : [];
}

function ownMember(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
