import { ClockCache } from "../../lib/clock-cache.ts";
import { ByteCache, type ByteCacheOptions } from "./store/byte-cache.ts";

/** Maximum number of entries in the object tier. */
const HOT_ENTRIES = 4_096;

/**
 * Larger values are decoded on each use: at the maximum size, the object tier would need half a gigabyte. A key that is restricted to 64
 * blocks of IPv6 addresses, which take much longer to compile than to match, is not larger.
 */
const HOT_VALUE_BYTES = 4096;

/** Size of a hash; and above the size of the largest record, so that encoding needs no bounds checks. */
const MAX_KEY_BYTES = 64;
const MAX_VALUE_BYTES = 128 * 1024;

/** When the object tier is full, one in this many decoded values replaces another: frequent ones get there soon. */
const HOT_ONE_IN = 8;

/** Encodes and decodes values. A name is the key as text: one character per byte, or hexadecimal. */
export interface Codec<V> {
  /** Returns the length of the key. */
  writeKey(name: string, into: Buffer): number;
  /** Returns the length of the value; NaN if it is not to be cached. */
  encode(value: V, into: Buffer): number;
  /** The result must not contain views of `bytes`. */
  decode(name: string, bytes: Buffer): V;
}

/**
 * A bounded map of values by name with two tiers: bytes outside the heap, and objects for recently used values. Objects are always decoded from
 * the cache's own bytes, so that no slice retains a buffer of the driver or of a request.
 */
export class TwoTierCache<V> {
  readonly #hot = new ClockCache<V>(HOT_ENTRIES);
  readonly #cold: ByteCache;
  readonly #codec: Codec<V>;
  /** Shared buffers for encoding, copied from immediately: a buffer per entry would fragment memory. */
  readonly #key = Buffer.alloc(MAX_KEY_BYTES);
  readonly #value = Buffer.alloc(MAX_VALUE_BYTES);
  #decoded = 0;

  constructor(codec: Codec<V>, options: ByteCacheOptions) {
    this.#codec = codec;
    this.#cold = new ByteCache(options);
  }

  get cold(): Pick<ByteCache, "size" | "bytes" | "allocatedBytes" | "evictions"> {
    return this.#cold;
  }

  get(name: string): V | undefined {
    return this.#hot.get(name) ?? this.#decode(name);
  }

  set(name: string, value: V): void {
    this.#hot.delete(name);
    const length = this.#codec.encode(value, this.#value);
    if (Number.isNaN(length)) this.#cold.delete(this.#keyOf(name));
    else this.#cold.set(this.#keyOf(name), this.#value.subarray(0, length));
  }

  delete(name: string): void {
    this.#hot.delete(name);
    this.#cold.delete(this.#keyOf(name));
  }

  clear(): void {
    this.#hot.clear();
    this.#cold.clear();
  }

  #keyOf(name: string): Buffer {
    return this.#key.subarray(0, this.#codec.writeKey(name, this.#key));
  }

  #decode(name: string): V | undefined {
    const bytes = this.#cold.get(this.#keyOf(name));
    if (bytes === undefined) return undefined;
    const value = this.#codec.decode(name, bytes);
    if (bytes.length <= HOT_VALUE_BYTES && this.#mayPromote()) this.#hot.set(name, value);
    return value;
  }

  /** Limits churn of the object tier, which would cost garbage collection. */
  #mayPromote(): boolean {
    return this.#hot.size < HOT_ENTRIES || this.#decoded++ % HOT_ONE_IN === 0;
  }
}
