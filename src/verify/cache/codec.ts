import type { SecretDigest } from "../../domain/key.ts";

/** Size of an encoded key id in bytes. */
export const KEY_ID_SIZE = 16;

/** Writes a UUID as 16 bytes and returns the number of bytes written, fewer for other text. */
export function writeKeyId(keyId: string, into: Buffer, at: number): number {
  return into.write(keyId.replaceAll("-", ""), at, KEY_ID_SIZE, "hex");
}

/** The inverse of `writeKeyId`. Returns lower case. */
export function keyIdText(bytes: Buffer, at: number): string {
  const hex = bytes.toString("hex", at, at + KEY_ID_SIZE);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** An encoded digest: the id of its server key (8 bytes) and HMAC-SHA-256. */
const ID_SIZE = 8;
const DIGEST_SIZE = 32;
export const SECRET_DIGEST_SIZE = ID_SIZE + DIGEST_SIZE;

/** Encodes digests and returns their end; NaN if one is malformed, which only a corrupted database would contain. */
export function encodeDigests(digests: readonly SecretDigest[], into: Buffer, start: number): number {
  let at = start;
  for (const { keyId, digest } of digests) {
    if (keyId.length !== ID_SIZE * 2 || digest.length !== DIGEST_SIZE) return Number.NaN;
    if (into.write(keyId, at, ID_SIZE, "hex") !== ID_SIZE) return Number.NaN;
    into.set(digest, at + ID_SIZE);
    at += SECRET_DIGEST_SIZE;
  }
  return at;
}

/** Returns copies, since the buffer is reused. */
export function decodeDigests(bytes: Buffer, start: number, end: number): SecretDigest[] {
  const digests: SecretDigest[] = [];
  for (let at = start; at < end; at += SECRET_DIGEST_SIZE) {
    const digest = new Uint8Array(DIGEST_SIZE);
    for (let i = 0; i < DIGEST_SIZE; i++) digest[i] = bytes[at + ID_SIZE + i] ?? 0;
    digests.push({ keyId: bytes.toString("hex", at, at + ID_SIZE), digest });
  }
  return digests;
}

/** UTF-8 bytes per UTF-16 code unit, at most. */
const MAX_UNIT_SIZE = 3;

/** Encodes a value as JSON in UTF-8 and returns its end; NaN if it may not fit or `start` is NaN. */
export function encodeJson(value: unknown, into: Buffer, start: number): number {
  const text = JSON.stringify(value);
  const fits = start + text.length * MAX_UNIT_SIZE <= into.length;
  return fits ? start + into.write(text, start, "utf8") : Number.NaN;
}
