/** How the hash of a raw key was made: `HashAlgorithm` of the protos without its prefix. */
export const HASH_ALGORITHMS = [
  "SHA256",
  "SHA384",
  "SHA512",
  "SHA512_256",
  "HMAC_SHA256",
  "HMAC_SHA512",
  "BCRYPT",
  "ARGON2",
  "SCRYPT",
  "PBKDF2",
] as const;

export type HashAlgorithm = (typeof HASH_ALGORITHMS)[number];

/** How bytes are written as text: `TextEncoding` of the protos without its prefix. */
export const TEXT_ENCODINGS = ["HEX", "BASE64", "BASE64URL", "UTF8"] as const;

export type TextEncoding = (typeof TEXT_ENCODINGS)[number];

/** How the hash of a raw key was made, while only the hash is known. The digest of its secret is then an HMAC of that hash. */
export interface RawKeyHash {
  readonly schemeId: number;
  /** Salt and parameters of a slow hash as canonical PHC text without the output; null for a fast hash. */
  readonly parameters: string | null;
}

/** How the hashes of many keys were made. */
export interface HashScheme {
  readonly schemeId: number;
  readonly algorithm: HashAlgorithm;
  /** Text before the raw key when it was hashed; may be empty. */
  readonly prefix: string;
  /** Text after it. */
  readonly suffix: string;
  readonly hmacKeyId: string | null;
  /** The key of an HMAC; null for other algorithms. */
  readonly hmacKey: Uint8Array | null;
}

/** What a caller states of how a hash was made. */
export type HashSchemeSpec = Pick<HashScheme, "algorithm" | "prefix" | "suffix" | "hmacKeyId">;

/** What a verification tries for a raw key that is unknown under its own digest. */
export interface HashLookups {
  readonly schemes: readonly HashScheme[];
  /** Lengths in bytes of the prefixes by which keys with slow hashes are found. */
  readonly prefixLengths: readonly number[];
}
