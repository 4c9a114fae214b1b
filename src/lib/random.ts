import { randomBytes } from "node:crypto";

/** A source of randomness: `bytes` returns `size` unpredictable bytes. Injected, so that tests control it. */
export interface Random {
  bytes(size: number): Uint8Array;
}

export const systemRandom: Random = { bytes: (size) => randomBytes(size) };

/** Per-call overhead of the source dominates reads of up to thousands of bytes. */
const POOL_SIZE = 4096;
/** Larger requests go directly to the source. */
const MAX_POOLED = 64;

/** Returns a source that reads ahead from `source`. Each byte is returned once, as a copy, and zeroed in the pool. */
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
