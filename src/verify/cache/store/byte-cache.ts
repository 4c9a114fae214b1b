import { ByteIndex, NO_SLOT } from "./byte-index.ts";
import { ByteSlab, MAX_KEY_LENGTH, wordsFor } from "./byte-slab.ts";
import { hashOf } from "./hash.ts";

export interface ByteCacheOptions {
  /** Limit of all memory, index included. */
  readonly maxBytes: number;
  readonly maxEntries: number;
  /** Random 32 bits, so that nobody can predict which keys collide in the index. */
  readonly seed: number;
  /** A power of two, at most 1 MiB. An entry has at most half a slab; an eviction sweeps one slab. Default: suited to `maxBytes`. */
  readonly slabBytes?: number;
}

const MAX_SLAB_BYTES = 256 * 1024;
const MIN_SLAB_BYTES = 1024;
const MIN_SLABS = 4;
const WORD = 4;
export const NO_PLACE = -1;

/**
 * A bounded map of byte strings without cost for the garbage collector: entries are stored consecutively in slabs outside the heap. A key is a
 * string with one character per byte. When it is full, the oldest slab is swept: entries used since its last sweep stay, up to half of the slab; all others are evicted (CLOCK per slab).
 */
export class ByteCache {
  readonly #index: ByteIndex;
  readonly #slabs: ByteSlab[] = [];
  readonly #maxSlabs: number;
  readonly #maxEntries: number;
  readonly #slabBytes: number;
  readonly #slabWords: number;
  /** An index position is the slab number shifted by this, plus the position in the slab. */
  readonly #slabShift: number;
  readonly #inSlab: number;
  readonly #seed: number;
  /** The slab being filled; the next one in the ring is the oldest. */
  #head = -1;
  #liveWords = 0;
  #evictions = 0;

  /** Throws `RangeError` if the limits leave no room for an entry or a slab. */
  constructor({ maxBytes, maxEntries, seed, slabBytes: given }: ByteCacheOptions) {
    this.#index = new ByteIndex(maxEntries);
    const room = maxBytes - this.#index.byteLength;
    const slabBytes = given ?? slabBytesFor(room);
    this.#maxSlabs = Math.floor(room / slabBytes);
    if (maxEntries < 1 || this.#maxSlabs < 1) throw new RangeError("too many cache entries for this size");
    this.#maxEntries = maxEntries;
    this.#slabBytes = slabBytes;
    this.#slabWords = slabBytes / WORD;
    this.#slabShift = Math.log2(this.#slabWords);
    this.#inSlab = this.#slabWords - 1;
    this.#seed = seed;
  }

  get size(): number {
    return this.#index.size;
  }

  /** Bytes of the entries. */
  get bytes(): number {
    return this.#liveWords * WORD;
  }

  /** Bytes allocated, at most `maxBytes`. */
  get allocatedBytes(): number {
    return this.#slabs.length * this.#slabBytes + this.#index.byteLength;
  }

  /** Number of entries evicted for others. */
  get evictions(): number {
    return this.#evictions;
  }

  /** Returns a view of the value, valid until the next change of the cache. */
  get(key: string): Buffer | undefined {
    const place = this.find(key);
    return place === NO_PLACE ? undefined : this.valueAt(place);
  }

  /** Returns the place of an entry, which is used thereby, until the next change of the cache; -1 if there is none. */
  find(key: string): number {
    const place = this.#find(hashOf(key, this.#seed), key);
    if (place !== NO_PLACE) this.#slabOf(place).markUsed(place & this.#inSlab);
    return place;
  }

  valueAt(place: number): Buffer {
    return this.#slabOf(place).valueAt(place & this.#inSlab);
  }

  /** Returns 32 bits of a value, in the byte order of the machine. */
  wordAt(place: number, index: number): number {
    return this.#slabOf(place).wordAt(place & this.#inSlab, index);
  }

  /** Returns whether an entry is small enough to be stored. */
  fits(key: string, value: Uint8Array): boolean {
    return key.length <= MAX_KEY_LENGTH && wordsFor(key, value) <= this.#slabWords / 2;
  }

  /** Returns whether it was stored. An oversized entry is not, but the earlier value of its key is removed. */
  set(key: string, value: Uint8Array): boolean {
    const hash = hashOf(key, this.#seed);
    this.#remove(hash, key);
    if (!this.fits(key, value)) return false;
    const words = wordsFor(key, value);
    while (this.#index.size >= this.#maxEntries) this.#sweepNext();
    if (this.#slabs[this.#head]?.hasRoom(words) !== true) this.#openSlab();
    const place = this.#slab(this.#head).append(hash, key, value);
    this.#index.add(hash, this.#head * this.#slabWords + place);
    this.#liveWords += words;
    return true;
  }

  /** Returns whether it existed. */
  delete(key: string): boolean {
    return this.#remove(hashOf(key, this.#seed), key);
  }

  /** Evicts everything and frees the slabs. */
  clear(): void {
    this.#index.clear();
    this.#slabs.length = 0;
    this.#head = -1;
    this.#liveWords = 0;
  }

  #find(hash: number, key: string): number {
    for (let slot = this.#index.first(hash); slot !== NO_SLOT; slot = this.#index.next(slot, hash)) {
      const place = this.#index.placeAt(slot);
      if (this.#slabOf(place).hasKey(place & this.#inSlab, key)) return place;
    }
    return NO_PLACE;
  }

  #remove(hash: number, key: string): boolean {
    const place = this.#find(hash, key);
    if (place === NO_PLACE) return false;
    const [slab, at] = [this.#slabOf(place), place & this.#inSlab];
    slab.markDead(at);
    this.#unlink(hash, place, slab.wordsAt(at));
    return true;
  }

  #unlink(hash: number, place: number, words: number): void {
    this.#index.remove(hash, place);
    this.#liveWords -= words;
  }

  #openSlab(): void {
    if (this.#slabs.length === this.#maxSlabs) this.#sweepNext();
    else this.#head = this.#slabs.push(new ByteSlab(this.#slabBytes)) - 1;
  }

  #sweepNext(): void {
    this.#head = (this.#head + 1) % this.#slabs.length;
    const slab = this.#slab(this.#head);
    const [base, end] = [this.#head * this.#slabWords, slab.filled];
    slab.filled = 0;
    for (let at = 0, words = 0; at < end; at += words) {
      words = slab.wordsAt(at);
      if (!slab.isDead(at)) this.#sweep(slab, base, at, words);
    }
  }

  /** Entries that stay are moved down over entries already swept. */
  #sweep(slab: ByteSlab, base: number, at: number, words: number): void {
    const hash = slab.hashAt(at);
    if (slab.isUsed(at) && slab.filled + words <= this.#slabWords / 2) {
      this.#index.move(hash, base + at, base + slab.keep(at));
    } else {
      this.#unlink(hash, base + at, words);
      this.#evictions++;
    }
  }

  #slabOf(place: number): ByteSlab {
    return this.#slab(place >>> this.#slabShift);
  }

  #slab(number: number): ByteSlab {
    const slab = this.#slabs[number];
    if (slab === undefined) throw new RangeError("cache slab not found");
    return slab;
  }
}

function slabBytesFor(room: number): number {
  const fitting = 2 ** Math.floor(Math.log2(Math.max(room, 1) / MIN_SLABS));
  return Math.min(Math.max(fitting, MIN_SLAB_BYTES), MAX_SLAB_BYTES);
}
