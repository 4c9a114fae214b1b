import type { JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { shownName } from "../../lib/shown-name.ts";

/** Objects and arrays within each other. */
export const MAX_JSON_DEPTH = 100;

/**
 * Members of all objects and arrays together: half as much again as the largest batch needs. 16 MiB of `{}` would be millions
 * of messages, and who calls is known only when they are made.
 */
export const MAX_JSON_VALUES = 250_000;

/** Names the request body as a whole in an error. */
export const BODY = "body";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * JSON (RFC 8259) from UTF-8, stricter than `JSON.parse`: a name that stands twice in an object, of which one would be
 * ignored, is refused, and so is what exceeds `MAX_JSON_DEPTH` or `MAX_JSON_VALUES`. Throws `INVALID_ARGUMENT` that quotes no
 * value: it may be a secret.
 */
export function parseJson(bytes: Uint8Array): JsonValue {
  const text = decodeUtf8(bytes);
  requireShape(text);
  try {
    return JSON.parse(text);
  } catch {
    throw invalidArgument(BODY, "is not JSON");
  }
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidArgument(BODY, "is not UTF-8");
  }
}

/** An object or array that is open at a place in the text. */
interface Frame {
  readonly isObject: boolean;
  /** The name or index of the member at that place. */
  at: string | number;
  /** Of an object that has more than one member. */
  names: Set<string> | undefined;
}

/** The characters that matter. */
const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Looks at brackets, commas and strings alone; whether the text is JSON at all is left to `JSON.parse`. */
function requireShape(text: string): void {
  const frames: Frame[] = [];
  let values = 1;
  let isNameNext = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      const end = endOfString(text, i);
      if (isNameNext) noteName(frames, text.slice(i, end + 1));
      isNameNext = false;
      i = end;
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      isNameNext = code === OPEN_OBJECT;
      pushFrame(frames, isNameNext);
      values++;
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      frames.pop();
    } else if (code === COMMA) {
      isNameNext = nextMember(frames.at(-1));
      values++;
    }
    if (values > MAX_JSON_VALUES) throw invalidArgument(BODY, `has more than ${MAX_JSON_VALUES} values`);
  }
}

function pushFrame(frames: Frame[], isObject: boolean): void {
  if (frames.length === MAX_JSON_DEPTH) throw invalidArgument(BODY, `is nested deeper than ${MAX_JSON_DEPTH}`);
  frames.push({ isObject, at: isObject ? "" : 0, names: undefined });
}

/** Goes on to the next member and tells whether that begins with a name. */
function nextMember(frame: Frame | undefined): boolean {
  if (frame === undefined) return false;
  if (typeof frame.at === "number") frame.at++;
  else frame.names ??= new Set([frame.at]);
  return frame.isObject;
}

function noteName(frames: readonly Frame[], quoted: string): void {
  const frame = frames.at(-1);
  if (frame === undefined) return;
  frame.at = unquote(quoted);
  if (frame.names?.has(frame.at)) {
    const path = frames.reduce((parent, { at }) => joinJsonPath(parent, at), "");
    throw invalidArgument(path, "is given twice");
  }
  frame.names?.add(frame.at);
}

function unquote(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    throw invalidArgument(BODY, "is not JSON");
  }
}

/** The index of the quote that ends the string, or of the end of the text. */
export function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) return i;
    if (code === BACKSLASH) i++;
  }
  return text.length;
}

/** A step of a path as in `requests[3].metadata.team`; a name that is no identifier goes in brackets. */
export function joinJsonPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  const name = shownName(step);
  if (!/^[\w-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === "" ? name : `${parent}.${name}`;
}
