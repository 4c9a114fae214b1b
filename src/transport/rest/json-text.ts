import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { shownName } from "../../lib/shown-name.ts";
import { findField } from "./fields.ts";

/** Objects and arrays within each other. */
export const MAX_JSON_DEPTH = 100;

/** How much a request may hold, however small its parts are: each costs memory and time of its own. */
export interface ValueLimits {
  /** Members of all objects and arrays together. */
  readonly values: number;
  /** Members of all objects, which cost ten times as much. */
  readonly members: number;
}

/** For batches of 16 MiB: half as much again as the largest valid one needs. */
const BATCH_LIMITS: ValueLimits = { values: 250_000, members: 100_000 };
const DEFAULT_LIMITS: ValueLimits = { values: 16_384, members: 16_384 };

const MIB = 2 ** 20;

/** Returns the limits of requests of so many bytes at most. */
export function valueLimits(maxRequestBytes: number): ValueLimits {
  return maxRequestBytes > MIB ? BATCH_LIMITS : DEFAULT_LIMITS;
}

/** Names the request body as a whole in an error. */
export const BODY = "body";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** What is known of a JSON text before it is read. */
export interface JsonShape {
  readonly limits: ValueLimits;
  /** The message that it is to be, if it is one as a whole: an unknown field is then refused where it stands. */
  readonly desc?: DescMessage | undefined;
}

/**
 * JSON (RFC 8259) from UTF-8, stricter than `JSON.parse`: a name that is given twice in an object, of which one would be
 * ignored, is refused, and so is what exceeds `MAX_JSON_DEPTH` or the limits. Throws `INVALID_ARGUMENT` that quotes no
 * value: it may be a secret.
 */
export function parseJson(bytes: Uint8Array, shape: JsonShape): JsonValue {
  return parseText(checkedText(bytes, shape));
}

/** The first half of `parseJson`: the text, whose shape is as it must be, if it is JSON at all. */
export function checkedText(bytes: Uint8Array, { limits, desc }: JsonShape): string {
  const text = decodeUtf8(bytes);
  requireShape(text, limits, desc);
  return text;
}

/** The other half. */
export function parseText(text: string): JsonValue {
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
  /** The message whose fields the members are, or the field whose items they are, if that is known. */
  readonly scope: DescMessage | DescField | undefined;
  /** The name or index of the member at that place. */
  at: string | number;
  /** The field of that name. */
  field: DescField | undefined;
  /** Of an object that has more than one member. */
  names: Set<string> | undefined;
}

/** RFC 8259 §2. */
const SPACE = " \t\n\r";

/** Looks at brackets, commas and strings alone; whether the text is JSON at all is left to `JSON.parse`. */
function requireShape(text: string, limits: ValueLimits, desc: DescMessage | undefined): void {
  const frames: Frame[] = [];
  let [values, members] = [1, 0];
  let isNameNext = false;
  for (let i = 0; i < text.length; i++) {
    const char = text.charAt(i);
    if (char === '"') {
      const end = endOfString(text, i);
      if (isNameNext) {
        noteName(frames, text.slice(i, end + 1));
        if (++members > limits.members) throw invalidArgument(BODY, `has more than ${limits.members} members`);
      }
      isNameNext = false;
      i = end;
    } else if (char === "{" || char === "[") {
      isNameNext = char === "{";
      pushFrame(frames, isNameNext, desc);
      values++;
    } else if (char === "}" || char === "]") {
      frames.pop();
    } else if (char === ",") {
      isNameNext = nextMember(frames.at(-1));
      values++;
    } else if (isNameNext && !SPACE.includes(char)) {
      // No JSON: what is quoted next is perhaps a value, and must not be taken for a name.
      isNameNext = false;
    }
    if (values > limits.values) throw invalidArgument(BODY, `has more than ${limits.values} values`);
  }
}

/** `desc` is that of the outermost object. */
function pushFrame(frames: Frame[], isObject: boolean, desc: DescMessage | undefined): void {
  if (frames.length === MAX_JSON_DEPTH) throw invalidArgument(BODY, `is nested deeper than ${MAX_JSON_DEPTH}`);
  const parent = frames.at(-1);
  const scope = parent === undefined ? (isObject ? desc : undefined) : scopeIn(parent, isObject);
  frames.push({ isObject, scope, at: isObject ? "" : 0, field: undefined, names: undefined });
}

/** The scope of an object or array that is the member at the place of its parent. */
function scopeIn({ scope, field }: Frame, isObject: boolean): Frame["scope"] {
  const isItem = scope?.kind === "field";
  if (!isItem && field?.fieldKind !== "message") {
    return field?.fieldKind === (isObject ? "map" : "list") ? field : undefined;
  }
  const message = isItem ? scope.message : field?.message;
  // Some of Google's own have a JSON form of their own.
  return isObject && !message?.typeName.startsWith("google.protobuf.") ? message : undefined;
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
  const name = unquote(quoted);
  frame.at = name;
  if (frame.scope?.kind === "message") {
    frame.field = findField(frame.scope, name);
    if (frame.field === undefined) throw invalidArgument(pathOf(frames), "is no known field");
  }
  if (frame.names?.has(name)) throw invalidArgument(pathOf(frames), "is given twice");
  frame.names?.add(name);
}

/** To the member that is being read, with fields by their names in the proto. */
function pathOf(frames: readonly Frame[]): string {
  return frames.reduce((parent, { at, field }) => joinJsonPath(parent, field?.name ?? at), "");
}

function unquote(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    throw invalidArgument(BODY, "is not JSON");
  }
}

/** The index of the quote that ends the string, or of the end of the text. Jumps from quote to quote, since strings may be long. */
function endOfString(text: string, start: number): number {
  for (let end = start; ; ) {
    end = text.indexOf('"', end + 1);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text.charAt(end - 1 - backslashes) === "\\") backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}

/** A step of a path as in `requests[3].metadata.team`; a name that is no identifier goes in brackets. */
export function joinJsonPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  const name = shownName(step);
  if (!/^[\w-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === "" ? name : `${parent}.${name}`;
}
