import type { Cursor } from "./cursor.ts";

/** A string literal: its literal parts, separated by wildcards. */
export interface Literal {
  readonly offset: number;
  readonly quoted: boolean;
  /** At least one, with escapes resolved. `ab*` is `["ab", ""]`. */
  readonly parts: readonly string[];
}

/** Ends at a character with a meaning. Unlike a name, a value may contain dots and colons (times, scopes). */
const VALUE = /[^\s\p{Cc}"'\\(),=<>!]+/uy;
/** A field name or keyword, or a key without quotes. */
export const NAME = /[^\s\p{Cc}"'\\(),=<>!.:]+/uy;
const CHUNK = /[^"'\\*]+/y;
const ESCAPE = /\\["'\\*]/y;
const QUOTE = /["']/y;
const WILDCARD = "*";

const ESCAPES = "a backslash is allowed only before a quote, * or backslash";

/** Parses a value ("arg" in the grammar), quoted or not; null if there is none. */
export function takeValue(cursor: Cursor): Literal | null {
  return takeString(cursor) ?? takeUnquoted(cursor, VALUE);
}

/** Parses the key of an entry ("field" in the grammar), quoted or not; null if there is none. */
export function takeName(cursor: Cursor): Literal | null {
  return takeString(cursor) ?? takeUnquoted(cursor, NAME);
}

/** Returns the text of the literal; null if it has a wildcard. */
export function plainText({ parts }: Literal): string | null {
  return parts.length === 1 ? (parts[0] ?? null) : null;
}

/** Returns the text before a trailing wildcard; null if there is none, or another one. */
export function prefixOf({ parts }: Literal): string | null {
  return parts.length === 2 && parts[1] === "" ? (parts[0] ?? null) : null;
}

/** Returns whether the literal is an unquoted star: any value. */
export function isAnything(literal: Literal): boolean {
  return !literal.quoted && prefixOf(literal) === "";
}

function takeUnquoted(cursor: Cursor, pattern: RegExp): Literal | null {
  const { offset } = cursor;
  const text = cursor.take(pattern);
  return text === "" ? null : { offset, quoted: false, parts: text.split(WILDCARD) };
}

/** Parses a string in double or single quotes. A backslash escapes a quote, a backslash or a star. */
function takeString(cursor: Cursor): Literal | null {
  const { offset } = cursor;
  const delimiter = cursor.peek();
  if (delimiter !== '"' && delimiter !== "'") return null;
  cursor.offset++;
  const parts = [""];
  while (!cursor.takeOne(delimiter)) {
    if (cursor.atEnd) throw cursor.error("unterminated string", `expected ${delimiter} at the end`, offset);
    if (cursor.takeOne(WILDCARD)) parts.push("");
    else parts.push((parts.pop() ?? "") + takeCharacters(cursor));
  }
  return { offset, quoted: true, parts };
}

/** Consumes plain characters, the other quote, or an escape. The next character is neither a star nor the closing quote. */
function takeCharacters(cursor: Cursor): string {
  const plain = cursor.take(CHUNK) || cursor.take(QUOTE);
  if (plain !== "") return plain;
  const escaped = cursor.take(ESCAPE);
  if (escaped === "") throw cursor.unexpected(ESCAPES);
  return escaped.slice(1);
}
