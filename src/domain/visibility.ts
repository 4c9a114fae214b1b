import type { VerifiableKey } from "./key.ts";
import type { Restrictions } from "./principal.ts";

/**
 * Reports whether a caller may know of this key. A restricted caller knows only the keys of its actors, and of these none that is itself
 * restricted to others, which names them.
 */
export function isVisible(
  { actorId, restrictedToActorIds }: Pick<VerifiableKey, "actorId" | "restrictedToActorIds">,
  { actorIds }: Restrictions,
): boolean {
  if (actorIds === null) return true;
  return actorIds.includes(actorId) && isSubset(restrictedToActorIds ?? [], actorIds);
}

export function isSubset(some: readonly string[], all: readonly string[]): boolean {
  return some.every((item) => all.includes(item));
}
