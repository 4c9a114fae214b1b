import type { SecretDigest } from "../../domain/key.ts";

/** A digest in memory: the id of its server key (16 hexadecimal digits), and HMAC-SHA-256. */
const ID_SIZE = 8;
const DIGEST_SIZE = 32;
export const SECRET_DIGEST_SIZE = ID_SIZE + DIGEST_SIZE;

/** Writes digests one after the other. Where they end; NaN if one is not of that form: there is none, but the database might say so. */
export function encodeDigests(digests: readonly SecretDigest[], into: Buffer, start: number): number {
  return digests.reduce((at, digest) => encodeDigest(digest, into, at), start);
}

function encodeDigest({ keyId, digest }: SecretDigest, into: Buffer, at: number): number {
  if (keyId.length !== ID_SIZE * 2 || digest.length !== DIGEST_SIZE) return Number.NaN;
  if (into.write(keyId, at, ID_SIZE, "hex") !== ID_SIZE) return Number.NaN;
  into.set(digest, at + ID_SIZE);
  return at + SECRET_DIGEST_SIZE;
}

/** Copies, since the bytes are soon those of another entry. */
export function decodeDigest(bytes: Buffer, at: number): SecretDigest {
  const digest = new Uint8Array(DIGEST_SIZE);
  for (let i = 0; i < DIGEST_SIZE; i++) digest[i] = bytes[at + ID_SIZE + i] ?? 0;
  return { keyId: bytes.toString("hex", at, at + ID_SIZE), digest };
}
