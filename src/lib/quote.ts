/** Up to this length it is faster to look at the characters here than to call `JSON.stringify`. */
const SHORT = 64;

const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const DELETE = 0x7f;

/** A string as `JSON.stringify` writes it. */
export function quote(text: string): string {
  return isPlainAscii(text) ? `"${text}"` : JSON.stringify(text);
}

/** Whether there is nothing to escape, as far as can be told with little effort. */
function isPlainAscii(text: string): boolean {
  if (text.length > SHORT) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < SPACE || code === QUOTE || code === BACKSLASH || code >= DELETE) return false;
  }
  return true;
}
