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
