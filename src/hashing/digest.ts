import type { SecretDigest } from "../domain/key.ts";
import type { HashScheme } from "../domain/raw-key-hash.ts";
import { hmacSha256, type KeyRing } from "../domain/server-keys.ts";
import { fastHash } from "./fast-hash.ts";
import type { ParsedRawKeyHash } from "./input/raw-key-hash.ts";
import { schemeDigest } from "./scheme-digest.ts";

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
  return parameters === null
    ? fastHashDigests(spec, output, ring)
    : digestsUnder(ring, ...slowHashParts(spec, parameters, output));
}

/** Returns the digests of a fast hash by the scheme with this digest. */
export function fastHashDigests(scheme: Uint8Array, output: Uint8Array, ring: KeyRing): readonly SecretDigest[] {
  return digestsUnder(ring, FAST_HASH, scheme, output);
}

/** Returns every digest under which a fast hash of the raw key may be stored; none for a scheme with slow hashes. */
export function fastDigests(rawKey: string, scheme: HashScheme, ring: KeyRing): readonly SecretDigest[] {
  const output = rawKey.isWellFormed() ? fastHash(rawKey, scheme) : undefined;
  return output === undefined ? [] : fastHashDigests(schemeDigest(scheme), output, ring);
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
