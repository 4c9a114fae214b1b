import type { JsonValue } from "@bufbuild/protobuf";

export type Bytes = Uint8Array<ArrayBuffer>;

/** Returns the hash of the parts together. */
export async function sha256(...parts: readonly Bytes[]): Promise<Bytes> {
  const data = Uint8Array.from(parts.flatMap((part) => [...part]));
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
}

export function isEqual(a: Bytes, b: Bytes): boolean {
  return hexOf(a) === hexOf(b);
}

export function hexOf(bytes: Bytes): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function utf8(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Returns canonical JSON (RFC 8785): members in the order of their UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`;
}
