import type { VerificationCache } from "./cache/cache.ts";

/** Wraps the cache to report whether each lookup was a hit. */
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
