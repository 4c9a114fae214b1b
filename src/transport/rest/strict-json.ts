import type { DescField, DescMessage, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../domain/errors.ts";
import { redactName } from "../../lib/redact-name.ts";
import { repeatInSlices } from "../../lib/time-slices.ts";
import { findField } from "./fields.ts";

/** Objects and arrays within each other. */
export const MAX_JSON_DEPTH = 100;

/** How much a request may hold, however small its parts are: each costs memory and time of its own. */
export interface ValueLimits {
  /** Members of all objects and arrays together. */
  readonly values: number;
  /** Members of all objects, which cost ten times as much. */
  readonly members: number;
  /** Members of one object: V8 keeps those of a large one in a table, which costs several times as much again. */
  readonly membersOfOne: number;
}

/** For batches of 16 MiB: half as much again as the largest valid one needs, which has 64 members in one object. */
const BATCH_LIMITS: ValueLimits = { values: 250_000, members: 100_000, membersOfOne: 1_000 };
const DEFAULT_LIMITS: ValueLimits = { values: 16_384, members: 16_384, membersOfOne: 16_384 };

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
function checkedText(bytes: Uint8Array, { limits, desc }: JsonShape): string {
  const text = decodeUtf8(bytes);
  new ShapeCheck(text, limits, desc).advance(text.length);
  return text;
}

/** Characters that are looked at between two looks at the clock: at the slowest some milliseconds. */
const STEP = 2 ** 18;

/** Resolves with the same in several turns of the event loop. */
export async function checkedLongText(
  bytes: Uint8Array,
  { limits, desc }: JsonShape,
  step: number = STEP,
): Promise<string> {
  const text = decodeUtf8(bytes);
  const check = new ShapeCheck(text, limits, desc);
  await repeatInSlices(() => check.advance(step));
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
class ShapeCheck {
  readonly #text: string;
  readonly #limits: ValueLimits;
  readonly #desc: DescMessage | undefined;
  readonly #frames: Frame[] = [];
  #values = 1;
  #members = 0;
  #isNameNext = false;
  /** Index of the next character; of a quote in a string, if it has been looked at up to there. */
  #next = 0;
  /** Index of the first quote of that string. */
  #string: number | undefined;

  /** `desc` is that of the outermost object, if it is known. */
  constructor(text: string, limits: ValueLimits, desc: DescMessage | undefined) {
    this.#text = text;
    this.#limits = limits;
    this.#desc = desc;
  }

  /** Looks at about so many characters more. Returns whether more are left. */
  advance(characters: number): boolean {
    const text = this.#text;
    const end = Math.min(text.length, this.#next + characters);
    let i = this.#next;
    while (i < end) {
      const char = this.#string === undefined ? text.charAt(i) : '"';
      if (char === '"') i = this.#takeString(i, end);
      else if (char === "{" || char === "[") this.#open(char === "{");
      else if (char === "}" || char === "]") this.#frames.pop();
      else if (char === ",") {
        this.#isNameNext = nextMember(this.#frames.at(-1));
        this.#countValue();
      } else if (this.#isNameNext && !SPACE.includes(char)) {
        // No JSON: what is quoted next is perhaps a value, and must not be taken for a name.
        this.#isNameNext = false;
      }
      if (this.#string === undefined) i++;
    }
    this.#next = i;
    return i < text.length;
  }

  /** Goes on at a quote of a string. Returns the index of the last one, or one at or after `end`, and then the string goes on. */
  #takeString(at: number, end: number): number {
    const start = this.#string ?? at;
    const last = endOfString(this.#text, at, end);
    this.#string = last.isEnd ? undefined : start;
    if (!last.isEnd) return last.at;
    if (this.#isNameNext) {
      noteName(this.#frames, this.#text.slice(start, last.at + 1), this.#limits);
      const { members } = this.#limits;
      if (++this.#members > members) throw invalidArgument(BODY, `has more than ${members} members`);
    }
    this.#isNameNext = false;
    return last.at;
  }

  #open(isObject: boolean): void {
    this.#isNameNext = isObject;
    pushFrame(this.#frames, isObject, this.#desc);
    this.#countValue();
  }

  #countValue(): void {
    const { values } = this.#limits;
    if (++this.#values > values) throw invalidArgument(BODY, `has more than ${values} values`);
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

function noteName(frames: readonly Frame[], quoted: string, { membersOfOne }: ValueLimits): void {
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
  if (frame.names !== undefined && frame.names.size > membersOfOne) {
    throw invalidArgument(BODY, `has an object of more than ${membersOfOne} members`);
  }
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

/**
 * Finds the quote that ends the string after the one at `from`, or the end of the text. Jumps from quote to quote, since strings may be
 * long, and stops at an escaped one from `limit` on.
 */
function endOfString(text: string, from: number, limit: number): { readonly at: number; readonly isEnd: boolean } {
  for (let at = from; ; ) {
    at = text.indexOf('"', at + 1);
    if (at === -1) return { at: text.length, isEnd: true };
    let backslashes = 0;
    while (text.charAt(at - 1 - backslashes) === "\\") backslashes++;
    if (backslashes % 2 === 0) return { at, isEnd: true };
    if (at >= limit) return { at, isEnd: false };
  }
}

/** A step of a path as in `requests[3].metadata.team`; a name that is no identifier goes in brackets. */
export function joinJsonPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  const name = redactName(step);
  if (!/^[\w-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === "" ? name : `${parent}.${name}`;
}
