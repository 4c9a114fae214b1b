import type { KeySecret } from "../../../src/domain/key.ts";
import type { HashScheme } from "../../../src/domain/raw-key-hash.ts";
import { deriveKeyRing } from "../../../src/domain/server-keys.ts";
import { rawKeyHashDigests } from "../../../src/hashing/digest.ts";
import { type ParsedRawKeyHash, parseRawKeyHash } from "../../../src/hashing/input/raw-key-hash.ts";

export const RING = deriveKeyRing(
  { current: Buffer.alloc(32, "current"), retired: [Buffer.alloc(32, "retired")] },
  "secret-digest",
);

/** A hash, as verification knows it. */
export interface StoredHash {
  readonly scheme: HashScheme;
  readonly secret: KeySecret;
}

/** Returns a parsed hash as it is stored, under one of the keys of the ring. */
export function stored(
  hash: ParsedRawKeyHash,
  { ring = RING, under = 0, hmacKey = null as Uint8Array | null } = {},
): StoredHash {
  const digest = rawKeyHashDigests(hash, ring)[under];
  if (digest === undefined) throw new RangeError("no such server key");
  const scheme = { schemeId: 1, ...hash.scheme, hmacKey };
  return {
    scheme,
    secret: { version: 1, digest, expireTime: null, hash: { schemeId: 1, parameters: hash.parameters } },
  };
}

/** Returns the stored form of a hash such as `$2b$04$…`. */
export function storedPhc(phc: string, affixes: { prefix?: string; suffix?: string } = {}): StoredHash {
  return stored(parseRawKeyHash({ phc, ...affixes }));
}

/** PBKDF2 at the limit, of no known raw key. */
export const LONG = "$pbkdf2-sha512$i=600000,l=64$c2FsdHNhbHQ";
/** The same at the lowest cost. */
export const SHORT = "$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHQ";
