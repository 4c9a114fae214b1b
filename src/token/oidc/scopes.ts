/**
 * The scopes in a claims set: a text separated by spaces (RFC 8693 §4.2) or an array of texts. `claim` is the name of a
 * claim, or names joined by dots that lead into objects, such as `realm_access.roles`; a claim that bears the whole name
 * comes first. A claim that is missing or anything else gives no scopes.
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
