import type { CacheStats, VerificationCache } from "./cache/cache.ts";
import { GatheredReads } from "./gathered-reads.ts";
import type { FindKeys, VerificationLease } from "./reader.ts";
import type { Recognitions } from "./recognized.ts";

const NO_RECOGNITIONS: Recognitions = {
  generation: 0,
  nameOf: () => "",
  recall: () => undefined,
  remember: () => undefined,
};

const NOTHING: CacheStats = {
  entries: 0,
  recognitions: 0,
  negatives: 0,
  bytes: 0,
  allocatedBytes: 0,
  hits: 0,
  misses: 0,
  evictions: 0,
  invalidations: 0,
};

/** In place of the cache where nothing may be remembered: every look-up is a read that is sent after it, gathered with others. */
export function createUncachedReader(findKeys: FindKeys, lease: VerificationLease): VerificationCache {
  const reads = new GatheredReads(findKeys, () => undefined);
  return {
    findKey: async (lookup) => {
      if (!lease.isTold()) await lease.renewed();
      return reads.read(lookup, "no-store");
    },
    findStale: () => undefined,
    recognitions: NO_RECOGNITIONS,
    invalidate: () => undefined,
    clear: () => undefined,
    stats: () => NOTHING,
  };
}
