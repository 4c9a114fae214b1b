import type { SecretDigest } from "../../domain/key.ts";

/** An encoded digest: the id of its server key (8 bytes) and HMAC-SHA-256. */
const ID_SIZE = 8;
const DIGEST_SIZE = 32;
export const SECRET_DIGEST_SIZE = ID_SIZE + DIGEST_SIZE;

/** Encodes digests and returns their end; NaN if one is malformed, which only a corrupted database would contain. */
export function encodeDigests(digests: readonly SecretDigest[], into: Buffer, start: number): number {
  return digests.reduce((at, digest) => encodeDigest(digest, into, at), start);
}

function encodeDigest({ keyId, digest }: SecretDigest, into: Buffer, at: number): number {
  if (keyId.length !== ID_SIZE * 2 || digest.length !== DIGEST_SIZE) return Number.NaN;
  if (into.write(keyId, at, ID_SIZE, "hex") !== ID_SIZE) return Number.NaN;
  into.set(digest, at + ID_SIZE);
  return at + SECRET_DIGEST_SIZE;
}

/** Returns a copy, since the buffer is reused. */
export function decodeDigest(bytes: Buffer, at: number): SecretDigest {
  const digest = new Uint8Array(DIGEST_SIZE);
  for (let i = 0; i < DIGEST_SIZE; i++) digest[i] = bytes[at + ID_SIZE + i] ?? 0;
  return { keyId: bytes.toString("hex", at, at + ID_SIZE), digest };
}
