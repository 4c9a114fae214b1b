/** Characters of a key that its hash depends on: the last ones, which are random in every key of the cache, also in a UUID version 7. */
const HASHED = 8;

/**
 * Returns 32 bits of a string with one character per byte: FNV-1a from the seed, with a final mix (MurmurHash3) for the low bits, which select
 * the slot.
 */
export function hashOf(key: string, seed: number): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = Math.max(0, key.length - HASHED); i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
