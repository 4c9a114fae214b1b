import type { FindKeys, VerificationLease } from "../reader.ts";
import type { CacheStats, KeyLookups, VerificationCache } from "./cache.ts";
import { KeyLoader } from "./key-loader.ts";

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
export function createUncachedReader(
  findKeys: FindKeys,
  lease: VerificationLease,
  findReserved: FindKeys = findKeys,
): VerificationCache {
  const lookups = (find: FindKeys): KeyLookups => {
    const reads = new KeyLoader(find, () => undefined);
    return {
      findAll: async (lookup) => {
        if (!lease.isCoherent()) await lease.renewed();
        return reads.readAll(lookup, "no-store");
      },
      findKey: async (lookup) => {
        if (!lease.isCoherent()) await lease.renewed();
        return reads.read(lookup, "no-store");
      },
    };
  };
  return {
    ...lookups(findKeys),
    reserved: lookups(findReserved),
    findStale: () => undefined,
    findCached: () => undefined,
    identities: null,
    invalidate: () => undefined,
    clear: () => undefined,
    stats: () => NOTHING,
  };
}
