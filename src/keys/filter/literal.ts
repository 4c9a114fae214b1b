import type { Cursor } from "./cursor.ts";

/** A string as it was written: its literal parts, between which stands a wildcard each. */
export interface Literal {
  readonly offset: number;
  readonly quoted: boolean;
  /** One or more; escapes are resolved. `ab*` is `["ab", ""]`. */
  readonly parts: readonly string[];
}

/** Up to what has a meaning of its own. A value may have dots and colons in it (times, scopes), a name may not. */
const VALUE = /[^\s\p{Cc}"'\\(),=<>!]+/uy;
const NAME = /[^\s\p{Cc}"'\\(),=<>!.:]+/uy;
const CHUNK = /[^"'\\*]+/y;
const ESCAPE = /\\["'\\*]/y;
const QUOTE = /["']/y;
const WILDCARD = "*";

const ESCAPES = "a backslash stands before a quote, a star or a backslash only";

/** A value ("arg" in the grammar) in quotes or not. Null when there is none here. */
export function takeValue(cursor: Cursor): Literal | null {
  return takeString(cursor) ?? takeUnquoted(cursor, VALUE);
}

/** The key of an entry ("field" in the grammar) in quotes or not. Null when there is none here. */
export function takeName(cursor: Cursor): Literal | null {
  return takeString(cursor) ?? takeUnquoted(cursor, NAME);
}

/** The name of a field, or a keyword; empty when there is none here. */
export function takeText(cursor: Cursor): string {
  return cursor.take(NAME);
}

/** What the literal says, or null if it has a wildcard. */
export function plainText({ parts }: Literal): string | null {
  return parts.length === 1 ? (parts[0] ?? null) : null;
}

/** What stands before a wildcard that is the last character; null if there is none, or another one. */
export function prefixOf({ parts }: Literal): string | null {
  return parts.length === 2 && parts[1] === "" ? (parts[0] ?? null) : null;
}

/** A star alone, without quotes: any value. */
export function isAnything(literal: Literal): boolean {
  return !literal.quoted && prefixOf(literal) === "";
}

function takeUnquoted(cursor: Cursor, pattern: RegExp): Literal | null {
  const { offset } = cursor;
  const text = cursor.take(pattern);
  return text === "" ? null : { offset, quoted: false, parts: text.split(WILDCARD) };
}

/** In double or single quotes. A backslash stands before a quote, a backslash or a star to mean just that character. */
function takeString(cursor: Cursor): Literal | null {
  const { offset } = cursor;
  const delimiter = cursor.peek();
  if (delimiter !== '"' && delimiter !== "'") return null;
  cursor.offset++;
  const parts = [""];
  while (!cursor.takeOne(delimiter)) {
    if (cursor.atEnd) throw cursor.error("unterminated string", `expected ${delimiter} at its end`, offset);
    if (cursor.takeOne(WILDCARD)) parts.push("");
    else parts.push((parts.pop() ?? "") + takeCharacters(cursor));
  }
  return { offset, quoted: true, parts };
}

/** A run of plain characters, the other quote, or an escape. Something is left, and neither a star nor the closing quote. */
function takeCharacters(cursor: Cursor): string {
  const plain = cursor.take(CHUNK) || cursor.take(QUOTE);
  if (plain !== "") return plain;
  const escaped = cursor.take(ESCAPE);
  if (escaped === "") throw cursor.unexpected(ESCAPES);
  return escaped.slice(1);
}
