/** Keeps a byte order mark: otherwise the text would not encode back, and `JSON.parse` would not reject it (RFC 8259 §8.1). */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Decodes UTF-8. Returns undefined if it is malformed; otherwise the text encodes back to the same bytes. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
