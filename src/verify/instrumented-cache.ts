import type { VerificationCache } from "./cache/cache.ts";

/** The same cache, whose look-ups someone is told of: whether the key was at hand. */
export function instrumented(cache: VerificationCache, onLookup: (isHit: boolean) => void): VerificationCache {
  return {
    findKey: (lookup, mode) => {
      const found = cache.findKey(lookup, mode);
      onLookup(!(found instanceof Promise));
      return found;
    },
    findStale: cache.findStale,
    identities: cache.identities,
    invalidate: (change) => cache.invalidate(change),
    clear: () => cache.clear(),
    stats: () => cache.stats(),
  };
}
