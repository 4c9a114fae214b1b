import type { KeyLookup, VerifiableRecord } from "../domain/key-lookup.ts";
import type { Restrictions } from "../domain/principal.ts";
import { isVisible } from "../domain/visibility.ts";
import { andThen } from "../lib/maybe-promise.ts";
import type { VerifyContext } from "./context.ts";
import type { IdentityCache } from "./identified.ts";
import type { CacheMode, FindCached, FindKey, FindKeysOf } from "./reader.ts";

/**
 * Returns the context of a caller, for whom foreign keys do not exist. Only its own keys are answered from the cache: a credential of any
 * other key is identified again and read from the database, whether its key is cached, exists or not, so that the time does not tell.
 */
export function restrictedTo(context: VerifyContext, restrictions: Restrictions): VerifyContext {
  if (restrictions.actorIds === null) return context;
  const ownOf = (stored: VerifiableRecord | null | undefined): VerifiableRecord | null =>
    stored && isVisible(stored.key, restrictions) ? stored : null;
  const findCached: FindCached = (lookup) => ownOf(context.findCached(lookup)) ?? undefined;
  const findKey: FindKey = (lookup, mode) => {
    const cached = mode === "default" ? findCached(lookup) : undefined;
    return cached ?? andThen(context.findKey(lookup, afterMiss(mode)), ownOf);
  };
  const findAll: FindKeysOf = (lookup, mode) => {
    const cached = mode === "default" ? findCached(lookup) : undefined;
    if (cached) return [cached];
    const found = context.findAll(lookup, afterMiss(mode));
    return andThen(found, (all) => all.filter((stored) => ownOf(stored) !== null));
  };
  return {
    ...context,
    findKey,
    findAll,
    findCached,
    findStale: (lookup) => ownOf(context.findStale(lookup)) ?? undefined,
    identities: context.identities && identitiesOf(context.identities, (lookup) => findCached(lookup) !== undefined),
  };
}

function afterMiss(mode: CacheMode): CacheMode {
  return mode === "default" ? "no-cache" : mode;
}

/** Returns the part of a cache whose keys are the caller's own and cached. */
function identitiesOf(all: IdentityCache, isOwn: (lookup: KeyLookup) => boolean): IdentityCache {
  return {
    get generation() {
      return all.generation;
    },
    nameOf: (credential) => all.nameOf(credential),
    get: (name) => {
      const known = all.get(name);
      return known !== undefined && isOwn(known.lookup) ? known : undefined;
    },
    set: (name, identified, generation) => all.set(name, identified, generation),
  };
}
