import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  type FieldViolation,
  invalidArgument,
  invalidArguments,
  type KeyholdError,
  MAX_VIOLATIONS,
} from "../../../domain/errors.ts";
import { type JsonValue, parseJson } from "../../../lib/json.ts";
import { suggestion } from "../../../lib/nearest-name.ts";
import { redactName } from "../../../lib/redact-name.ts";
import { fieldNames, findField } from "./fields.ts";
import { syntaxErrorPosition } from "./syntax-error.ts";

/** Nested objects and arrays. */
export const MAX_JSON_DEPTH = 100;

/** How much a request may contain, however small its parts are: each costs memory and time. */
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

/** Returns the limits of requests of up to `maxRequestBytes`. */
export function valueLimits(maxRequestBytes: number): ValueLimits {
  return maxRequestBytes > MIB ? BATCH_LIMITS : DEFAULT_LIMITS;
}

/** Names the request body as a whole in an error. */
export const BODY = "body";

/** An open object or array. */
interface Frame {
  readonly isObject: boolean;
  /** The message whose fields the members are, or the field whose items they are, if known. */
  readonly scope: DescMessage | DescField | undefined;
  /** The name or index of the current member. */
  at: string | number;
  /** The field of that name. */
  field: DescField | undefined;
  /** Undefined while the object has one member at most. */
  names: Set<string> | undefined;
}

/** RFC 8259 §2. */
const SPACE = " \t\n\r";

/**
 * Returns a function that scans the next `characters` of a JSON text, about, and returns whether more are left. It looks at brackets,
 * commas and strings; whether the text is JSON at all is left to `JSON.parse`. It throws `INVALID_ARGUMENT` for what `JSON.parse` accepts and
 * a request must not have: a name twice in an object, more than `MAX_JSON_DEPTH` or the limits, and, if `desc` is that of the outermost
 * object, unknown fields, at the end of the text or at the twentieth.
 */
export function jsonScanner(text: string, limits: ValueLimits, desc?: DescMessage): (characters: number) => boolean {
  const frames: Frame[] = [];
  const unknown: FieldViolation[] = [];
  let [values, members, isNameNext, next] = [1, 0, false, 0];
  /** Where the string begins that `next` is an escaped quote of. */
  let partial: number | undefined;
  const countValue = () => {
    if (++values > limits.values)
      throw invalidArgument(BODY, `has more than ${limits.values} values`, "TOO_MANY_ITEMS");
  };
  return (characters) => {
    const end = Math.min(text.length, next + characters);
    let i = next;
    for (; i < end; i++) {
      const char = partial === undefined ? text.charAt(i) : '"';
      if (char === '"') {
        const start = partial ?? i;
        // From quote to quote, since strings may be long.
        do i = text.indexOf('"', i + 1);
        while (i !== -1 && i < end && isEscaped(text, i));
        if (i === -1) i = text.length;
        partial = i >= end && isEscaped(text, i) ? start : undefined;
        if (partial !== undefined) break;
        if (isNameNext) {
          const name = unquote(text.slice(start, i + 1));
          if (name === undefined) throw notJson(text);
          const violation = addName(frames, name, limits);
          if (violation && unknown.push(violation) === MAX_VIOLATIONS) throw invalidArguments(unknown);
          if (++members > limits.members) {
            throw invalidArgument(BODY, `has more than ${limits.members} members`, "TOO_MANY_ITEMS");
          }
        }
        isNameNext = false;
      } else if (char === "{" || char === "[") {
        isNameNext = char === "{";
        frames.push(openFrame(frames, isNameNext, desc));
        countValue();
      } else if (char === "}" || char === "]") frames.pop();
      else if (char === ",") {
        isNameNext = nextMember(frames.at(-1));
        countValue();
      } else if (isNameNext && !SPACE.includes(char)) {
        // Not JSON: the next string may be a value, which must not be quoted as a name.
        isNameNext = false;
      }
    }
    next = i;
    if (i >= text.length && unknown.length > 0) throw invalidArguments(unknown);
    return i < text.length;
  };
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text.charAt(quote - 1 - backslashes) === "\\") backslashes++;
  return backslashes % 2 === 1;
}

/** `desc` is that of the outermost object. */
function openFrame(frames: readonly Frame[], isObject: boolean, desc: DescMessage | undefined): Frame {
  if (frames.length === MAX_JSON_DEPTH)
    throw invalidArgument(BODY, `is nested deeper than ${MAX_JSON_DEPTH}`, "TOO_LARGE");
  const parent = frames.at(-1);
  const scope = parent === undefined ? (isObject ? desc : undefined) : scopeIn(parent, isObject);
  return { isObject, scope, at: isObject ? "" : 0, field: undefined, names: undefined };
}

/** Returns the scope of an object or array that is the current member of its parent. */
function scopeIn({ scope, field }: Frame, isObject: boolean): Frame["scope"] {
  const isItem = scope?.kind === "field";
  if (!isItem && field?.fieldKind !== "message") {
    return field?.fieldKind === (isObject ? "map" : "list") ? field : undefined;
  }
  const message = isItem ? scope.message : field?.message;
  // Well-known types have JSON forms of their own.
  return isObject && !message?.typeName.startsWith("google.protobuf.") ? message : undefined;
}

/** Moves on to the next member. Returns whether that begins with a name. */
function nextMember(frame: Frame | undefined): boolean {
  if (frame === undefined) return false;
  if (typeof frame.at === "number") frame.at++;
  else frame.names ??= new Set([frame.at]);
  return frame.isObject;
}

/** Begins the member of this name. Returns a violation if it is an unknown field. */
function addName(frames: readonly Frame[], name: string, { membersOfOne }: ValueLimits): FieldViolation | undefined {
  const frame = frames.at(-1);
  if (frame === undefined) return undefined;
  frame.at = name;
  frame.field = frame.scope?.kind === "message" ? findField(frame.scope, name) : undefined;
  if (frame.names?.has(name)) throw invalidArgument(pathOf(frames), "is given twice", "DUPLICATE_FIELD");
  if (frame.names !== undefined && frame.names.add(name).size > membersOfOne) {
    throw invalidArgument(BODY, `has an object of more than ${membersOfOne} members`, "TOO_MANY_ITEMS");
  }
  if (frame.scope?.kind !== "message" || frame.field !== undefined) return undefined;
  return unknownField(pathOf(frames), name, frame.scope);
}

/** Returns the violation of a member of a message that has no field of this name. */
export function unknownField(path: string, name: string, desc: DescMessage): FieldViolation {
  const description = `is no known field${suggestion(name, fieldNames(desc))}`;
  return { field: path, description, reason: "UNKNOWN_FIELD" };
}

/** Returns the path of the current member, with the proto names of fields. */
function pathOf(frames: readonly Frame[]): string {
  return frames.reduce((parent, { at, field, scope }) => joinJsonPath(parent, field ?? at, scope), "");
}

function unquote(quoted: string): string | undefined {
  return quoted.includes("\\") ? parseJson(quoted)?.toString() : quoted.slice(1, -1);
}

function notJson(text: string): KeyholdError {
  return invalidArgument(BODY, `is not JSON${syntaxErrorPosition(text)}`);
}

/** Parses JSON. Throws `INVALID_ARGUMENT` on a syntax error. */
export function parseText(text: string): JsonValue {
  const value = parseJson(text);
  if (value === undefined) throw notJson(text);
  return value;
}

/**
 * Adds a step to a path such as `requests[3].metadata.team`: a field, an index or the name of another member of `scope`. A name that is not an
 * identifier goes in brackets.
 */
export function joinJsonPath(
  parent: string,
  step: DescField | string | number,
  scope?: DescMessage | DescField,
): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  const name =
    typeof step === "string" ? redactName(step, scope?.kind === "message" ? fieldNames(scope) : []) : step.name;
  if (!/^[\w-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === "" ? name : `${parent}.${name}`;
}
