import { hash } from "node:crypto";
import { UUID } from "../../domain/key.ts";
import type { Stamp } from "../../domain/key-lookup.ts";
import type { Credentials } from "../context.ts";
import type { Loaded } from "../identified.ts";
import type { CacheLease } from "./cache.ts";
import { CachedCredential, type Entries, encodeCredential, placeFor, WORDS } from "./cached-credential.ts";
import type { Epochs } from "./epochs.ts";
import { unpackStamp } from "./stamp-codec.ts";
import { ByteCache, type ByteCacheOptions, NO_PLACE } from "./store/byte-cache.ts";

/**
 * Caches credentials with their keys by the SHA-256 of their text, which itself is not stored. An entry is current as long as its key,
 * the limits of its actor and the digest of its raw key are unchanged, and as long as the key rings of this process.
 */
export class CredentialCache implements Credentials, Entries {
  readonly store: ByteCache;
  readonly #epochs: Epochs;
  readonly #lease: CacheLease;
  #generation = 0;
  #hits = 0;

  constructor(epochs: Epochs, lease: CacheLease, options: ByteCacheOptions) {
    this.store = new ByteCache(options);
    this.#epochs = epochs;
    this.#lease = lease;
  }

  get generation(): number {
    return this.#generation;
  }

  get hits(): number {
    return this.#hits;
  }

  /** Returns a string, the fastest type to hash into. */
  nameOf(credential: string): string {
    return hash("sha256", credential, "latin1");
  }

  find(name: string): CachedCredential | undefined {
    const cached = this.#lease.isCoherent() ? this.#get(name) : undefined;
    if (cached === undefined) return undefined;
    this.#hits++;
    this.#lease.onLookup?.(true);
    return cached;
  }

  findStale(name: string): CachedCredential | undefined {
    return this.#lease.isInStaleGrace?.() === true ? this.#get(name) : undefined;
  }

  /** Returns whether a cached credential is still as it was found, and may be used. */
  isCurrent({ stamp }: CachedCredential): boolean {
    return this.#lease.isCoherent() && this.#epochs.isCurrent(stamp);
  }

  set(name: string, loaded: Loaded, generation: number): void {
    const { stamp, key } = loaded.stored;
    if (stamp === undefined || generation !== this.#generation || !UUID.test(key.keyId)) return;
    const bytes = encodeCredential(loaded, stamp);
    if (bytes === undefined) this.store.delete(name);
    else this.store.set(name, bytes);
  }

  delete(name: string): void {
    this.store.delete(name);
  }

  entryOf(name: string, { count, ofKey, ofName, ofActor }: Stamp): Buffer | undefined {
    const place = this.store.find(name);
    if (place === NO_PLACE) return undefined;
    const stamp = this.#stampAt(place);
    const isOfKey = stamp.ofKey === ofKey && stamp.ofName === ofName && stamp.ofActor === ofActor;
    return isOfKey && stamp.count === count ? this.store.valueAt(place) : undefined;
  }

  append(name: string, stamp: Stamp, section: Buffer): void {
    const entry = this.entryOf(name, stamp);
    if (entry === undefined) return;
    const end = placeFor(section, entry);
    if (end === undefined) return;
    if (end + section.length <= entry.length) {
      entry.set(section, end);
      return;
    }
    const grown = Buffer.concat([entry.subarray(0, end), section]);
    if (this.store.fits(name, grown)) this.store.set(name, grown);
  }

  clear(): void {
    this.store.clear();
    this.#epochs.invalidateAll();
    this.#generation++;
  }

  #get(name: string): CachedCredential | undefined {
    const { store } = this;
    const place = store.find(name);
    if (place === NO_PLACE) return undefined;
    const stamp = this.#stampAt(place);
    if (!this.#epochs.isCurrent(stamp)) return undefined;
    const validUntil = store.wordAt(place, WORDS.validUntil) + store.wordAt(place, WORDS.validUntil + 1) * 2 ** 32;
    return new CachedCredential(name, stamp, validUntil, Buffer.from(store.valueAt(place)), this);
  }

  #stampAt(place: number): Stamp {
    const { store } = this;
    const [count, ofKey] = [store.wordAt(place, WORDS.count), store.wordAt(place, WORDS.ofKey)];
    return unpackStamp(count, ofKey, store.wordAt(place, WORDS.ofName));
  }
}
