import type { JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";

/** Objects and arrays within each other. */
export const MAX_JSON_DEPTH = 100;

/** Names the request body as a whole in an error. */
export const BODY = "body";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * JSON (RFC 8259) from UTF-8, stricter than `JSON.parse`: a name that stands twice in an object, of which one would be
 * ignored, is refused, and so is nesting deeper than `MAX_JSON_DEPTH`. Throws `INVALID_ARGUMENT` that quotes no value: it
 * may be a secret.
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

export function isJsonObject(value: JsonValue | undefined): value is { [name: string]: JsonValue } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidArgument(BODY, "is not UTF-8");
  }
}

/** An object or array that is open at a place in the text: `names` only of an object, `at` is the name or index of the member there. */
interface Frame {
  readonly names: Set<string> | undefined;
  at: string | number;
}

/** Looks at brackets, commas and strings alone; whether the text is JSON at all is left to `JSON.parse`. */
function requireShape(text: string): void {
  const frames: Frame[] = [];
  let isNameNext = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') {
      const end = endOfString(text, i);
      if (isNameNext) noteName(frames, text.slice(i, end + 1));
      isNameNext = false;
      i = end;
    } else if (character === "{" || character === "[") {
      isNameNext = character === "{";
      pushFrame(frames, isNameNext);
    } else if (character === "}" || character === "]") {
      isNameNext = false;
      frames.pop();
    } else if (character === ",") {
      isNameNext = nextMember(frames.at(-1));
    }
  }
}

function pushFrame(frames: Frame[], isObject: boolean): void {
  frames.push(isObject ? { names: new Set(), at: "" } : { names: undefined, at: 0 });
  if (frames.length > MAX_JSON_DEPTH) throw invalidArgument(BODY, `is nested deeper than ${MAX_JSON_DEPTH}`);
}

/** Goes on to the next member and tells whether that begins with a name. */
function nextMember(frame: Frame | undefined): boolean {
  if (typeof frame?.at === "number") frame.at++;
  return frame?.names !== undefined;
}

function noteName(frames: readonly Frame[], quoted: string): void {
  const frame = frames.at(-1);
  if (frame?.names === undefined) return;
  frame.at = unquote(quoted);
  if (frame.names.has(frame.at)) {
    const path = frames.reduce((parent, { at }) => joinJsonPath(parent, at), "");
    throw invalidArgument(path, "is given twice");
  }
  frame.names.add(frame.at);
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
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

const MAX_NAME_IN_PATH = 100;

/** A step of a path as in `requests[3].metadata.team`; a name that is no identifier goes in brackets. */
export function joinJsonPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  const name = step.length > MAX_NAME_IN_PATH ? `${step.slice(0, MAX_NAME_IN_PATH)}…` : step;
  if (!/^[\w-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === "" ? name : `${parent}.${name}`;
}
