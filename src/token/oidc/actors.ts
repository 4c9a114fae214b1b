import { claimAt, isTexts } from "./scopes.ts";

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
