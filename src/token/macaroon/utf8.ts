// `ignoreBOM` keeps a leading U+FEFF in the text, or it would not encode back.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of well-formed UTF-8, or undefined: it encodes back byte for byte. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
