import { invalidArgument } from "../../../domain/errors.ts";
import type { JsonValue } from "../../../lib/json.ts";

/** Names the request body as a whole in an error. */
export const BODY = "body";

/** Nested objects and arrays. */
export const MAX_JSON_DEPTH = 100;

/** How much a request may contain, however small its parts are: each costs memory and time. */
export interface ValueLimits {
  /** Members of all objects and arrays together. */
  readonly values: number;
  /** Objects and their members: V8 needs a microsecond for a name that it has not seen in such an object. */
  readonly members: number;
  /** Members of one object: V8 keeps those of a large one in a table, which costs several times as much again. */
  readonly membersOfOne: number;
}

/** For batches of 4 MiB: the largest valid one has 1,000 items of 80 members and 100 scopes. */
const BATCH_LIMITS: ValueLimits = { values: 250_000, members: 100_000, membersOfOne: 1_000 };
const DEFAULT_LIMITS: ValueLimits = { values: 16_384, members: 16_384, membersOfOne: 16_384 };

const MIB = 2 ** 20;

/** Returns the limits of requests of up to `maxRequestBytes`. */
export function valueLimits(maxRequestBytes: number): ValueLimits {
  return maxRequestBytes > MIB ? BATCH_LIMITS : DEFAULT_LIMITS;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Returns the value of a JSON text in UTF-8. Throws `INVALID_ARGUMENT` if it is not JSON, or exceeds the limits. */
export function parseJson(bytes: Uint8Array, limits: ValueLimits): JsonValue {
  const text = decodeUtf8(bytes);
  requireFewValues(text, limits);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidArgument(BODY, `is not JSON${positionOf(error)}`);
  }
}

/**
 * Returns where a text stops being JSON, as ` at line 2, column 5`; nothing if V8 does not say. The message of the error itself must not be
 * shown: it quotes the text, which may contain a secret.
 */
function positionOf(syntaxError: unknown): string {
  const [, line, column] = / JSON at position \d+ \(line (\d+) column (\d+)\)$/.exec(String(syntaxError)) ?? [];
  return line === undefined ? "" : ` at line ${line}, column ${column}`;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidArgument(BODY, "is not UTF-8", "INVALID_CHARACTER");
  }
}

/** The members of the open object at each depth, while `requireFewValues` runs. */
const membersAt = new Uint32Array(MAX_JSON_DEPTH + 1);

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * Rejects a text with too many values, before it is parsed: 4 MiB of small objects with a name of their own each would take `JSON.parse`
 * three seconds. Looks at punctuation outside of strings; whether the text is JSON at all is left to the parser.
 */
function requireFewValues(text: string, limits: ValueLimits): void {
  let [values, members, depth] = [1, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === COMMA) values++;
    else if (code === COLON) {
      members++;
      const count = (membersAt[depth] ?? 0) + 1;
      membersAt[depth] = count;
      if (count > limits.membersOfOne) {
        throw invalidArgument(BODY, `has an object with more than ${limits.membersOfOne} members`, "TOO_MANY_ITEMS");
      }
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--;
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      values++;
      if (code === OPEN_OBJECT) members++;
      if (++depth > MAX_JSON_DEPTH) throw invalidArgument(BODY, `is nested deeper than ${MAX_JSON_DEPTH}`, "TOO_LARGE");
      membersAt[depth] = 0;
    }
  }
  if (values > limits.values) throw tooMany(limits.values, "values");
  if (members > limits.members) throw tooMany(limits.members, "members");
}

/** Returns the position of the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = start;
  do end = text.indexOf('"', end + 1);
  while (end !== -1 && isEscaped(text, end));
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text.charCodeAt(start - 1) === BACKSLASH) start--;
  return (at - start) % 2 === 1;
}

function tooMany(limit: number, what: string): Error {
  return invalidArgument(BODY, `has more than ${limit} ${what}`, "TOO_MANY_ITEMS");
}
