import type { CacheStats, VerificationCache } from "./cache/cache.ts";
import type { IdentityCache } from "./identified.ts";
import { KeyLoader } from "./key-loader.ts";
import type { FindKeys, VerificationLease } from "./reader.ts";

const NO_IDENTITIES: IdentityCache = {
  generation: 0,
  nameOf: () => "",
  get: () => undefined,
  set: () => undefined,
};

const NOTHING: CacheStats = {
  entries: 0,
  credentials: 0,
  negatives: 0,
  bytes: 0,
  allocatedBytes: 0,
  hits: 0,
  misses: 0,
  evictions: 0,
  invalidations: 0,
};

/** Creates a reader without a cache: every lookup is a read sent after it, in batches. */
export function createUncachedReader(findKeys: FindKeys, lease: VerificationLease): VerificationCache {
  const reads = new KeyLoader(findKeys, () => undefined);
  return {
    findKey: async (lookup) => {
      if (!lease.isCoherent()) await lease.renewed();
      return reads.read(lookup, "no-store");
    },
    findStale: () => undefined,
    identities: NO_IDENTITIES,
    invalidate: () => undefined,
    clear: () => undefined,
    stats: () => NOTHING,
  };
}
