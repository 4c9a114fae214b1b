/** Up to this length a scan of the characters is faster than `JSON.stringify`. */
const SHORT = 64;

const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const DELETE = 0x7f;

/** Returns a string as `JSON.stringify` writes it. */
export function quote(text: string): string {
  return isPlainAscii(text) ? `"${text}"` : JSON.stringify(text);
}

/** Returns whether the text is short and needs no escapes. */
function isPlainAscii(text: string): boolean {
  if (text.length > SHORT) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < SPACE || code === QUOTE || code === BACKSLASH || code >= DELETE) return false;
  }
  return true;
}
