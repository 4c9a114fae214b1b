import type { VerifiableRecord } from "../domain/key-lookup.ts";
import type { Restrictions } from "../domain/principal.ts";
import { isVisible } from "../domain/visibility.ts";
import { andThen } from "../lib/maybe-promise.ts";
import type { CachedCredential } from "./cache/cached-credential.ts";
import type { Credentials, VerifyContext } from "./context.ts";
import type { CacheMode, FindKey, FindKeysOf } from "./reader.ts";

/**
 * Returns the context of a caller, for whom foreign keys do not exist. Only its own keys are answered from the cache: a credential of any
 * other key is identified again and read from the database, whether its key is cached, exists or not, so that the time does not tell.
 */
export function restrictedTo(context: VerifyContext, restrictions: Restrictions): VerifyContext {
  if (restrictions.actorIds === null) return context;
  const ownOf = (stored: VerifiableRecord | null | undefined): VerifiableRecord | null =>
    stored && isVisible(stored.key, restrictions) ? stored : null;
  const findKey: FindKey = (lookup, mode) => andThen(context.findKey(lookup, afterMiss(mode)), ownOf);
  const findAll: FindKeysOf = (lookup, mode) =>
    andThen(context.findAll(lookup, afterMiss(mode)), (all) => all.filter((stored) => ownOf(stored) !== null));
  const { credentials } = context;
  return {
    ...context,
    findKey,
    findAll,
    findStale: (lookup) => ownOf(context.findStale(lookup)) ?? undefined,
    credentials: credentials && ownCredentials(credentials, (cached) => isVisible(cached.key, restrictions)),
  };
}

function afterMiss(mode: CacheMode): CacheMode {
  return mode === "default" ? "no-cache" : mode;
}

/** Returns the part of a cache whose keys are the caller's own. */
function ownCredentials(all: Credentials, isOwn: (cached: CachedCredential) => boolean): Credentials {
  const ownOf = (cached: CachedCredential | undefined) => (cached !== undefined && isOwn(cached) ? cached : undefined);
  return {
    get generation() {
      return all.generation;
    },
    nameOf: (credential) => all.nameOf(credential),
    find: (name) => ownOf(all.find(name)),
    isCurrent: (cached) => all.isCurrent(cached),
    findStale: (name) => ownOf(all.findStale(name)),
    set: (name, loaded, generation) => all.set(name, loaded, generation),
    delete: (name) => all.delete(name),
  };
}
