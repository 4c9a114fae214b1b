/** Unpadded base64url (RFC 4648 §5, §3.2). */
export function encodeBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
}

/**
 * The bytes of an unpadded base64url text, or undefined. Only the canonical text is taken: no padding, no other
 * characters, no stray bits at the end (RFC 4648 §3.5), so that no two texts mean the same bytes.
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
