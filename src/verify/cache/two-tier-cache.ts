import { ClockCache } from "../../lib/clock-cache.ts";
import { ByteCache, type ByteCacheOptions } from "./store/byte-cache.ts";

/** Entries that are at hand as objects. */
const HOT_ENTRIES = 4_096;

/** Larger values are decoded each time: hot ones of the largest size would take half a gigabyte. */
const HOT_VALUE_BYTES = 1024;

/** A hash; and more than a record of the largest key takes, so that it can be written without looking. */
const MAX_KEY_BYTES = 64;
const MAX_VALUE_BYTES = 128 * 1024;

/** Once there are enough hot values, one in so many that were decoded takes the place of another: what is asked for often gets there soon. */
const HOT_ONE_IN = 8;

/** How values of a layer are written and read. The name of a value is its key as text, a character a byte or in hexadecimal. */
export interface Codec<V> {
  /** The length of the key. */
  writeKey(name: string, into: Buffer): number;
  /** The length of the value; NaN for one that is not to be kept. */
  encode(value: V, into: Buffer): number;
  /** Nothing of what it answers may be a view of the bytes. */
  decode(name: string, bytes: Buffer): V;
}

/**
 * A bounded map of values by name: as bytes outside the heap, and as objects those that were asked for lately. Objects are always
 * decoded from our own bytes, so that nothing that the driver or a request made stays in memory by a slice of it.
 */
export class TwoTierCache<V> {
  readonly #hot = new ClockCache<V>(HOT_ENTRIES);
  readonly #cold: ByteCache;
  readonly #codec: Codec<V>;
  /** What is encoded is copied from here at once: buffers of its own would fragment the memory beside the slabs. */
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
    return this.#hot.get(name) ?? this.#thaw(name);
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

  #thaw(name: string): V | undefined {
    const bytes = this.#cold.get(this.#keyOf(name));
    if (bytes === undefined) return undefined;
    const value = this.#codec.decode(name, bytes);
    if (bytes.length <= HOT_VALUE_BYTES && this.#mayHeat()) this.#hot.set(name, value);
    return value;
  }

  /** Values that come and go at every call would be work for the garbage collector. */
  #mayHeat(): boolean {
    return this.#hot.size < HOT_ENTRIES || this.#decoded++ % HOT_ONE_IN === 0;
  }
}
