import type { HashAlgorithm } from "../domain/raw-key-hash.ts";

/**
 * The algorithms without a salt: their names in `node:crypto`, and the bytes of their output. Hashes by them are looked
 * up by value.
 */
export const FAST_ALGORITHMS = {
  SHA256: { name: "sha256", size: 32, isKeyed: false },
  SHA384: { name: "sha384", size: 48, isKeyed: false },
  SHA512: { name: "sha512", size: 64, isKeyed: false },
  SHA512_256: { name: "sha512-256", size: 32, isKeyed: false },
  HMAC_SHA256: { name: "sha256", size: 32, isKeyed: true },
  HMAC_SHA512: { name: "sha512", size: 64, isKeyed: true },
} as const satisfies Partial<Record<HashAlgorithm, object>>;

export type FastHashAlgorithm = keyof typeof FAST_ALGORITHMS;

/** Returns whether hashes by the algorithm have no salt. */
export function isFastAlgorithm(algorithm: HashAlgorithm): algorithm is FastHashAlgorithm {
  return Object.hasOwn(FAST_ALGORITHMS, algorithm);
}

/** Returns the names of the algorithms whose output has this size, such as `HASH_ALGORITHM_SHA256 or HASH_ALGORITHM_HMAC_SHA256`; undefined: none. */
export function algorithmsOfSize(size: number): string | undefined {
  const fitting = Object.entries(FAST_ALGORITHMS).filter(([, algorithm]) => algorithm.size === size);
  const names = fitting.map(([name]) => `HASH_ALGORITHM_${name}`);
  return names.length === 0 ? undefined : new Intl.ListFormat("en-GB", { type: "disjunction" }).format(names);
}
