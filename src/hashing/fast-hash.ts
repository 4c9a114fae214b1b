import { createHmac, createSecretKey, hash, type KeyObject } from "node:crypto";
import type { HashScheme } from "../domain/raw-key-hash.ts";
import { FAST_ALGORITHMS, isFastAlgorithm } from "./algorithms.ts";

/** Keys of HMACs by scheme, so that each is prepared once. */
const keys = new WeakMap<HashScheme, KeyObject>();

/** Returns the fast hash of a raw key, which must be well-formed Unicode; undefined for a scheme with slow hashes, or without its key. */
export function fastHash(rawKey: string, scheme: HashScheme): Uint8Array | undefined {
  const { algorithm, prefix, suffix, hmacKey } = scheme;
  if (!isFastAlgorithm(algorithm)) return undefined;
  const { name, isKeyed } = FAST_ALGORITHMS[algorithm];
  const message = prefix + rawKey + suffix;
  if (!isKeyed) return hash(name, message, "buffer");
  return hmacKey === null ? undefined : createHmac(name, keyOf(scheme, hmacKey)).update(message).digest();
}

function keyOf(scheme: HashScheme, hmacKey: Uint8Array): KeyObject {
  let key = keys.get(scheme);
  if (key === undefined) {
    key = createSecretKey(hmacKey);
    keys.set(scheme, key);
  }
  return key;
}
