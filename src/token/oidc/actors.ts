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

/** No key has another actor, and PostgreSQL would reject the statement. */
function isStorable(actorId: string): boolean {
  return actorId !== "" && actorId.isWellFormed() && !actorId.includes("\0");
}
