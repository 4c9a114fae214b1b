import type { KeyLookup, VerifiableRecord } from "../../domain/key-lookup.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { type Random, systemRandom } from "../../lib/random.ts";
import type { CacheMode, FindCached, FindKey, FindKeys, FindKeysOf, KeyChange, VerificationLease } from "../reader.ts";
import { nameOf, namesOf } from "../reader.ts";
import { CredentialCache } from "./credential-cache.ts";
import { Epochs } from "./epochs.ts";
import { KeyCache } from "./key-cache.ts";
import { KeyLoader } from "./key-loader.ts";
import { NegativeCache } from "./negative-cache.ts";
import type { ByteCacheOptions } from "./store/byte-cache.ts";

export interface CacheLease extends VerificationLease {
  /** Returns whether the lease has expired but cached entries may still be used. Default: never. */
  readonly isInStaleGrace?: () => boolean;
  /** Called with each lookup: whether it was a hit. */
  readonly onLookup?: ((isHit: boolean) => void) | undefined;
}

export interface CacheOptions extends CacheLease {
  /** Limit of all memory that grows with the number of keys; 0: nothing is cached, and every lookup is a read sent after it. */
  readonly maxBytes: number;
  /** Maximum number of keys, and of credentials. */
  readonly maxEntries: number;
  /** Maximum number of negative entries. */
  readonly maxNegatives: number;
  readonly random?: Random;
}

/** Look-ups in the cache or the database. */
export interface KeyLookups {
  readonly findKey: FindKey;
  readonly findAll: FindKeysOf;
}

/** Shares of `maxBytes`. A flood of tokens evicts no keys. */
const SHARES = { credentials: 0.8, keys: 0.2 } as const;

/** The cache of verification: credentials with their keys, and keys that tokens name. Correct as long as it receives every invalidation. */
export class VerificationCache implements KeyLookups {
  readonly credentials: CredentialCache | null = null;
  readonly #keys: KeyCache | null = null;
  readonly #epochs = new Epochs();
  readonly #negatives: NegativeCache;
  readonly #loaders: KeyLoader[] = [];
  readonly findKey: FindKey;
  readonly findAll: FindKeysOf;
  /** The same for authentication and self-revocation, which must not wait behind verifications. */
  readonly reserved: KeyLookups;
  readonly #options: CacheOptions;
  #hits = 0;
  #misses = 0;
  #invalidations = 0;

  /** Throws `RangeError` if `maxBytes` is too small for the number of entries. */
  constructor(findKeys: FindKeys, options: CacheOptions, findReserved: FindKeys = findKeys) {
    if (options.maxBytes > 0) {
      this.credentials = new CredentialCache(this.#epochs, options, layerOptions(options, SHARES.credentials));
      this.#keys = new KeyCache(this.#epochs, layerOptions(options, SHARES.keys));
    }
    this.#negatives = new NegativeCache(options.maxNegatives);
    this.#options = options;
    ({ findKey: this.findKey, findAll: this.findAll } = this.#lookups(findKeys));
    this.reserved = this.#lookups(findReserved);
  }

  #lookups(findKeys: FindKeys): KeyLookups {
    const loader = new KeyLoader(findKeys, (lookup, found) => this.#store(lookup, found));
    this.#loaders.push(loader);
    const { isCoherent, renewed, onLookup } = this.#options;
    const whenCoherent =
      <T>(find: (lookup: KeyLookup, mode: CacheMode) => MaybePromise<T>) =>
      (lookup: KeyLookup, callMode: CacheMode) => {
        const mode = this.#keys === null ? "no-store" : callMode;
        const found = isCoherent() ? find(lookup, mode) : renewed().then(() => find(lookup, mode));
        onLookup?.(!(found instanceof Promise));
        return found;
      };
    return {
      findKey: whenCoherent((lookup, mode) => this.#find(loader, lookup, mode)),
      findAll: whenCoherent((lookup, mode) => this.#findAll(loader, lookup, mode)),
    };
  }

  readonly findStale: FindCached = (lookup) =>
    this.#options.isInStaleGrace?.() === true ? this.#cached(lookup) : undefined;

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

  /** Evicts these keys and digests, and the keys of these actors, and keeps reads in flight from caching them. */
  invalidate(change: KeyChange): void {
    if (this.#keys === null) return;
    this.#invalidations++;
    for (const loader of this.#loaders) loader.invalidate(change);
    for (const keyId of change.keyIds) this.#keys.delete(keyId);
    this.#epochs.invalidate(change);
    this.#negatives.invalidate(change);
  }

  /** Evicts everything, including reads in flight: after a lost change feed, or when signing keys changed. */
  clear(): void {
    if (this.#keys === null) return;
    this.#invalidations++;
    for (const loader of this.#loaders) loader.invalidateAll();
    this.#keys.clear();
    this.#negatives.clear();
    this.credentials?.clear();
  }

  stats() {
    const [credentials, keys] = [this.credentials?.store, this.#keys?.store];
    const layers = [credentials, keys].filter((layer) => layer !== undefined);
    return {
      /** Keys that cached tokens name. */
      entries: keys?.size ?? 0,
      /** Credentials, also those that a change has made out of date. */
      credentials: credentials?.size ?? 0,
      negatives: this.#negatives.size,
      /** Bytes of the entries, and those allocated for them, at most `maxBytes`. */
      bytes: sum(layers.map(({ bytes }) => bytes)),
      allocatedBytes: sum(layers.map(({ allocatedBytes }) => allocatedBytes)),
      hits: this.#hits + (this.credentials?.hits ?? 0),
      misses: this.#misses,
      evictions: sum(layers.map(({ evictions }) => evictions)),
      /** Evictions because of a change. */
      invalidations: this.#invalidations,
    };
  }

  /** Returns undefined if nothing is cached. */
  #cached(lookup: KeyLookup): VerifiableRecord | null | undefined {
    if (this.#keys === null) return undefined;
    const stored = this.#keys.get(lookup);
    if (stored !== undefined) return stored;
    const name = nameOf(lookup);
    return name === undefined || this.#isNegative(name, lookup) ? null : undefined;
  }

  /** The first digest stands for the others, but not for hashes and prefixes, which the lookup of another raw key may share. */
  #isNegative(name: string, lookup: KeyLookup): boolean {
    if (!this.#negatives.has(name)) return false;
    return lookup.hashes === undefined || namesOf(lookup).every((alias) => this.#negatives.has(alias));
  }

  /** Permits to cache single records only: a change of any of several must be noticed, but only that of the cached one would be. */
  #store(lookup: KeyLookup, found: readonly VerifiableRecord[]): void {
    const [stored = null] = found;
    if (stored !== null && found.length === 1)
      stored.stamp = this.#epochs.stampOf(stored.key, nameOf(lookup) ?? stored.key.keyId);
    this.#keys?.set(lookup, found.length > 1 ? null : stored);
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
