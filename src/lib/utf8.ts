/** A byte order mark stays in the text: without it the text would not encode back, and `JSON.parse` refuses it (RFC 8259 §8.1). */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of well-formed UTF-8, or undefined: it encodes back byte for byte. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
