import { endOfString, MAX_JSON_DEPTH, MAX_JSON_VALUES } from "../rest/json-text.ts";

const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** What has more strings is no JSON of so many values. */
const MAX_STRINGS = 2 * MAX_JSON_VALUES;

/**
 * How many strings are in a JSON text, names among them. Undefined if it exceeds `MAX_JSON_DEPTH` or `MAX_JSON_VALUES`, which is
 * known before memory is taken for what is in it; perhaps too if it is not JSON. It jumps from quote to quote: only what stands between
 * strings is looked at.
 */
export function countStrings(text: string): number | undefined {
  let strings = 0;
  let values = 1;
  let depth = 0;
  for (let start = 0; start < text.length; strings++) {
    const quote = text.indexOf('"', start);
    const end = quote === -1 ? text.length : quote;
    for (let i = start; i < end && values <= MAX_JSON_VALUES; i++) {
      const code = text.charCodeAt(i);
      if (code === COMMA) values++;
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
        values++;
        if (++depth > MAX_JSON_DEPTH) return undefined;
      } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) depth--;
    }
    if (values > MAX_JSON_VALUES || strings > MAX_STRINGS) return undefined;
    if (quote === -1) return strings;
    start = jumpToEnd(text, quote) + 1;
  }
  return strings;
}

/** `endOfString` by a jump, but where a quote may be escaped. */
function jumpToEnd(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  return text.charCodeAt(end - 1) === BACKSLASH ? endOfString(text, start) : end;
}
