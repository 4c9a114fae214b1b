import type { Random } from "./random.ts";

/** Of a call of the source the call itself is what costs, up to thousands of bytes. */
const POOL_SIZE = 4096;
/** What is larger than this is drawn for itself. */
const MAX_POOLED = 64;

/**
 * The randomness of `source`, drawn ahead for many small demands. Every byte is handed out once, as a copy, and is then gone
 * from the pool.
 */
export function pooledRandom(source: Random): Random {
  let pool: Uint8Array = new Uint8Array();
  let next = 0;
  return {
    bytes: (size) => {
      if (size > MAX_POOLED) return source.bytes(size);
      if (next + size > pool.length) {
        pool = source.bytes(POOL_SIZE);
        next = 0;
      }
      const drawn = pool.subarray(next, next + size);
      const copy = new Uint8Array(drawn);
      drawn.fill(0);
      next += size;
      return copy;
    },
  };
}
