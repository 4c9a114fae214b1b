import type { KeyLookup, VerifiableRecord } from "../../domain/key-lookup.ts";
import type { Clock } from "../../lib/clock.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { type Random, systemRandom } from "../../lib/random.ts";
import type { IdentityCache } from "../identified.ts";
import type { CacheMode, FindCached, FindKey, FindKeys, FindKeysOf, KeyChange, VerificationLease } from "../reader.ts";
import { nameOf, namesOf } from "../reader.ts";
import { CredentialCache } from "./credential-cache.ts";
import { KeyCache } from "./key-cache.ts";
import { KeyLoader } from "./key-loader.ts";
import { NegativeCache } from "./negative-cache.ts";
import type { ByteCacheOptions } from "./store/byte-cache.ts";

export interface CacheOptions extends VerificationLease {
  /** Returns whether the lease has expired but cached entries may still be used. Default: never. */
  readonly isInStaleGrace?: () => boolean;
  /** Limit of all memory that grows with the number of keys. */
  readonly maxBytes: number;
  /** Maximum number of keys, and of credentials. */
  readonly maxEntries: number;
  /** Maximum number of negative entries. */
  readonly maxNegatives: number;
  readonly clock: Clock;
  readonly random?: Random;
}

/** Look-ups in the cache or the database. */
export interface KeyLookups {
  readonly findKey: FindKey;
  readonly findAll: FindKeysOf;
}

/** The cache of verification: identified credentials, and keys as read. Correct as long as it receives every invalidation. */
export interface VerificationCache extends KeyLookups {
  /** The same for authentication and self-revocation, which must not wait behind verifications. */
  readonly reserved: KeyLookups;
  readonly findStale: FindCached;
  readonly findCached: FindCached;
  readonly identities: IdentityCache | null;
  /** Evicts these keys and digests, and keeps reads in flight from caching them. */
  invalidate(change: KeyChange): void;
  /** Evicts everything, including reads in flight: after a lost change feed, or when signing keys changed. */
  clear(): void;
  stats(): CacheStats;
}

export interface CacheStats {
  /** Cached keys. */
  readonly entries: number;
  /** Cached credentials. */
  readonly credentials: number;
  readonly negatives: number;
  /** Bytes of the entries. */
  readonly bytes: number;
  /** Bytes allocated for them, at most `maxBytes`. */
  readonly allocatedBytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
  /** Evictions because of a change. */
  readonly invalidations: number;
}

/** Shares of `maxBytes`, sized for a million keys. A flood of one sort of entries evicts only that sort. */
const SHARES = { credentials: 0.35, records: 0.45, keyIds: 0.2 } as const;

/** Creates the cache. Throws `RangeError` if `maxBytes` is too small for the number of entries. */
export function createVerificationCache(
  findKeys: FindKeys,
  options: CacheOptions,
  findReserved: FindKeys = findKeys,
): VerificationCache {
  return new Cache(findKeys, options, findReserved);
}

class Cache implements VerificationCache {
  readonly identities: CredentialCache;
  readonly #records: KeyCache;
  readonly #negatives: NegativeCache;
  readonly #loaders: readonly KeyLoader[];
  readonly findKey: FindKey;
  readonly findAll: FindKeysOf;
  readonly reserved: KeyLookups;
  readonly #lease: VerificationLease;
  readonly #isInStaleGrace: () => boolean;
  #hits = 0;
  #misses = 0;
  #invalidations = 0;

  constructor(findKeys: FindKeys, options: CacheOptions, findReserved: FindKeys) {
    this.identities = new CredentialCache(options.clock, layerOptions(options, SHARES.credentials));
    this.#records = new KeyCache(layerOptions(options, SHARES.records), layerOptions(options, SHARES.keyIds));
    this.#negatives = new NegativeCache(options.maxNegatives);
    this.#lease = options;
    this.#isInStaleGrace = options.isInStaleGrace ?? (() => false);
    const [loader, reserved] = [findKeys, findReserved].map(
      (find) => new KeyLoader(find, (lookup, found) => this.#store(lookup, found)),
    ) as [KeyLoader, KeyLoader];
    this.#loaders = [loader, reserved];
    ({ findKey: this.findKey, findAll: this.findAll } = this.#lookups(loader));
    this.reserved = this.#lookups(reserved);
  }

  #lookups(loader: KeyLoader): KeyLookups {
    const lease = this.#lease;
    return {
      findKey: (lookup, mode) =>
        lease.isCoherent()
          ? this.#find(loader, lookup, mode)
          : lease.renewed().then(() => this.#find(loader, lookup, mode)),
      findAll: (lookup, mode) =>
        lease.isCoherent()
          ? this.#findAll(loader, lookup, mode)
          : lease.renewed().then(() => this.#findAll(loader, lookup, mode)),
    };
  }

  readonly findCached = (lookup: KeyLookup) => (this.#lease.isCoherent() ? this.#cached(lookup) : undefined);

  readonly findStale = (lookup: KeyLookup) => (this.#isInStaleGrace() ? this.#cached(lookup) : undefined);

  #find(loader: KeyLoader, lookup: KeyLookup, mode: CacheMode): MaybePromise<VerifiableRecord | null> {
    if (mode !== "default") return loader.read(lookup, mode);
    const cached = this.#cached(lookup);
    if (cached === undefined) this.#misses++;
    else this.#hits++;
    return cached === undefined ? loader.read(lookup, mode) : cached;
  }

  #findAll(loader: KeyLoader, lookup: KeyLookup, mode: CacheMode): MaybePromise<readonly VerifiableRecord[]> {
    const cached = mode === "default" ? this.#cached(lookup) : undefined;
    if (cached === undefined) return loader.readAll(lookup, mode);
    return cached === null ? [] : [cached];
  }

  invalidate(change: KeyChange): void {
    this.#invalidations++;
    for (const loader of this.#loaders) loader.invalidate(change);
    this.#records.invalidate(change);
    this.#negatives.invalidate(change);
  }

  clear(): void {
    this.#invalidations++;
    for (const loader of this.#loaders) loader.invalidateAll();
    this.#records.clear();
    this.#negatives.clear();
    this.identities.clear();
  }

  stats(): CacheStats {
    const layers = [this.identities.cold, this.#records.records.cold, this.#records.keyIds.cold];
    return {
      entries: this.#records.records.cold.size,
      credentials: this.identities.cold.size,
      negatives: this.#negatives.size,
      bytes: sum(layers.map(({ bytes }) => bytes)),
      allocatedBytes: sum(layers.map(({ allocatedBytes }) => allocatedBytes)),
      hits: this.#hits,
      misses: this.#misses,
      evictions: sum(layers.map(({ evictions }) => evictions)),
      invalidations: this.#invalidations,
    };
  }

  /** Returns undefined if nothing is cached. */
  #cached(lookup: KeyLookup): VerifiableRecord | null | undefined {
    const stored = this.#records.get(lookup);
    if (stored !== undefined) return stored;
    const name = nameOf(lookup);
    return name === undefined || this.#isNegative(name, lookup) ? null : undefined;
  }

  /** The first digest stands for the others, but not for hashes and prefixes, which the lookup of another raw key may share. */
  #isNegative(name: string, lookup: KeyLookup): boolean {
    if (!this.#negatives.has(name)) return false;
    return lookup.hashes === undefined || namesOf(lookup).every((alias) => this.#negatives.has(alias));
  }

  /** Caches single records only: a change of any of several must be noticed, but only that of the cached one would be. */
  #store(lookup: KeyLookup, found: readonly VerifiableRecord[]): void {
    const [stored = null] = found;
    this.#records.set(lookup, found.length > 1 ? null : stored);
    if (stored === null) this.#negatives.add(namesOf(lookup));
    else for (const name of namesOf(lookup)) this.#negatives.delete(name);
  }
}

function layerOptions({ maxBytes, maxEntries, random = systemRandom }: CacheOptions, share: number): ByteCacheOptions {
  const seed = Buffer.from(random.bytes(4)).readInt32LE();
  return { maxBytes: Math.floor(maxBytes * share), maxEntries, seed };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Wraps the cache to report whether each lookup was a hit. */
export function instrumented(cache: VerificationCache, onLookup: (isHit: boolean) => void): VerificationCache {
  const reported =
    <T>(find: (lookup: KeyLookup, mode: CacheMode) => MaybePromise<T>) =>
    (lookup: KeyLookup, mode: CacheMode) => {
      const found = find(lookup, mode);
      onLookup(!(found instanceof Promise));
      return found;
    };
  const lookups = ({ findKey, findAll }: KeyLookups): KeyLookups => {
    return { findKey: reported(findKey), findAll: reported(findAll) };
  };
  return {
    ...lookups(cache),
    reserved: lookups(cache.reserved),
    findStale: cache.findStale,
    findCached: cache.findCached,
    identities: cache.identities,
    invalidate: (change) => cache.invalidate(change),
    clear: () => cache.clear(),
    stats: () => cache.stats(),
  };
}
