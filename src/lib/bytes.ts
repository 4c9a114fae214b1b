import { timingSafeEqual } from "node:crypto";

/** Returns whether two byte strings are equal. The time depends on their lengths only. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Encodes bytes as unpadded base64url (RFC 4648 §5, §3.2). */
export function encodeBase64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64url");
}

/**
 * Decodes unpadded base64url. Returns undefined unless the text is canonical: no padding, no other characters, no non-zero trailing
 * bits (RFC 4648 §3.5), so that no two texts decode to the same bytes.
 */
export function decodeBase64url(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
