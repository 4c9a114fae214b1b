import { createHmac, createSecretKey, hash } from "node:crypto";
import type { SecretDigest } from "../domain/key.ts";
import type { HashScheme, HashSchemeSpec } from "../domain/raw-key-hash.ts";
import { hmacSha256, type KeyRing } from "../domain/server-keys.ts";
import { memoizeByIdentity } from "../lib/memoize.ts";
import { FAST_ALGORITHMS, isFastAlgorithm } from "./algorithms.ts";
import type { ParsedRawKeyHash } from "./input/raw-key-hash.ts";

/**
 * The first bytes of what is digested in place of a raw key. No text in UTF-8 begins with them (RFC 3629 §1), so no raw key has the digest of a
 * hash, of a prefix or of a slow hash.
 */
const FAST_HASH = Uint8Array.of(0xff);
const LOOKUP_PREFIX = Uint8Array.of(0xfe);
const SLOW_HASH = Uint8Array.of(0xfd);

/** Terminates the parameters, in which it does not occur. */
const END = Uint8Array.of(0);

/**
 * Returns the digests under which a raw key of which only a hash is known may be stored, under every server key of the ring "secret-digest", the
 * current one's first.
 */
export function rawKeyHashDigests(
  { scheme, parameters, output }: ParsedRawKeyHash,
  ring: KeyRing,
): readonly SecretDigest[] {
  const spec = schemeDigest(scheme);
  const parts = parameters === null ? [FAST_HASH, spec, output] : slowHashParts(spec, parameters, output);
  return digestsUnder(ring, ...parts);
}

/** Returns every digest under which a fast hash of the raw key may be stored; none for a scheme with slow hashes. */
export function fastDigests(rawKey: string, scheme: HashScheme, ring: KeyRing): readonly SecretDigest[] {
  const output = rawKey.isWellFormed() ? fastHash(rawKey, scheme) : undefined;
  return output === undefined ? [] : digestsUnder(ring, FAST_HASH, schemeDigest(scheme), output);
}

/** Returns what is digested of a slow hash by the scheme with this digest. */
export function slowHashParts(
  scheme: Uint8Array,
  parameters: string,
  output: Uint8Array,
): readonly (string | Uint8Array)[] {
  return [SLOW_HASH, scheme, parameters, END, output];
}

/** Returns the digests of the first bytes of a raw key, under every server key of the ring "secret-digest", the current one's first. */
export function lookupPrefixDigests(prefix: string | Uint8Array, ring: KeyRing): readonly SecretDigest[] {
  return digestsUnder(ring, LOOKUP_PREFIX, prefix);
}

/** The same for a raw key and the length of the prefix in bytes; none if the raw key is shorter. */
export function prefixDigests(rawKey: string, length: number, ring: KeyRing): readonly SecretDigest[] {
  const bytes = rawKey.isWellFormed() ? Buffer.from(rawKey) : Buffer.alloc(0);
  return bytes.length < length ? [] : lookupPrefixDigests(bytes.subarray(0, length), ring);
}

function digestsUnder(ring: KeyRing, ...parts: readonly (string | Uint8Array)[]): readonly SecretDigest[] {
  return ring.all.map((key) => ({ keyId: key.id, digest: hmacSha256(key, ...parts) }));
}

/** The keys of HMACs, each prepared once. */
const keyOf = memoizeByIdentity((hmacKey: Uint8Array) => createSecretKey(hmacKey));

/** Returns the fast hash of a raw key, which must be well-formed Unicode; undefined for a scheme with slow hashes, or without its key. */
function fastHash(rawKey: string, scheme: HashScheme): Uint8Array | undefined {
  const { algorithm, prefix, suffix, hmacKey } = scheme;
  if (!isFastAlgorithm(algorithm)) return undefined;
  const { name, isKeyed } = FAST_ALGORITHMS[algorithm];
  const message = prefix + rawKey + suffix;
  if (!isKeyed) return hash(name, message, "buffer");
  return hmacKey === null ? undefined : createHmac(name, keyOf(hmacKey)).update(message).digest();
}

/**
 * Returns 32 bytes that distinct schemes do not share. The row id of a scheme is no part of it: a restored database may number them anew.
 * Verifications use the same objects for long.
 */
export const schemeDigest = memoizeByIdentity((scheme: HashSchemeSpec): Uint8Array => {
  const { algorithm, prefix, suffix, hmacKeyId } = scheme;
  return hash("sha256", JSON.stringify([algorithm, prefix, suffix, hmacKeyId]), "buffer");
});
