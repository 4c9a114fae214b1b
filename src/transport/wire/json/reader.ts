import { setImmediate as nextTick } from "node:timers/promises";
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonReadOptions,
  type JsonValue,
  type MessageShape,
  type Registry,
} from "@bufbuild/protobuf";
import { textViolationsIn } from "../../../api/text.ts";
import { type FieldViolation, invalidArgument, invalidArguments, MAX_VIOLATIONS } from "../../../domain/errors.ts";
import { isJsonObject } from "../../../lib/json.ts";
import type { MaybePromise } from "../../../lib/maybe-promise.ts";
import { repeatInSlices } from "../../../lib/time-slices.ts";
import { findField, notOfForm, valueForm } from "./fields.ts";
import { BODY, joinJsonPath, jsonScanner, MAX_JSON_DEPTH, parseText, unknownField, type ValueLimits } from "./scan.ts";
import { impossibleTimes } from "./times.ts";

/** The form of JSON over every protocol. */
export const JSON_OPTIONS = {
  useProtoFieldName: true,
  alwaysEmitImplicit: true,
  ignoreUnknownFields: false,
  // A message decoder may count a level of JSON twice.
  recursionLimit: 2 * MAX_JSON_DEPTH,
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Reads a message from its JSON in UTF-8. Throws `INVALID_ARGUMENT` with the field at fault, but no value, which may be a secret. */
export function readJsonMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  limits: ValueLimits,
  registry?: Registry,
): MessageShape<D> {
  return readJson(desc, requireObject(parseJson(bytes, limits, desc)), registry);
}

/** From so many bytes on, a message is read in several ticks of the event loop. */
export const LONG = 2 ** 17;

/** `readJsonMessage` for a message of any length: returns a promise for a long one. */
export function readJsonOfAnyLength<D extends DescMessage>(
  ...args: Parameters<typeof readJsonMessage<D>>
): MaybePromise<MessageShape<D>> {
  return args[1].length < LONG ? readJsonMessage(...args) : readLongJsonMessage(...args);
}

async function readLongJsonMessage<D extends DescMessage>(
  ...[desc, bytes, limits, registry]: Parameters<typeof readJsonMessage<D>>
): Promise<MessageShape<D>> {
  const value = await parseLongJson(bytes, limits, desc);
  await nextTick();
  const message = readJson(desc, requireObject(value), registry);
  await nextTick();
  return message;
}

/** Returns the value of a JSON text in UTF-8. Throws `INVALID_ARGUMENT` for what `JSON.parse` or `jsonScanner` refuses. */
export function parseJson(bytes: Uint8Array, limits: ValueLimits, desc?: DescMessage): JsonValue {
  const text = decodeUtf8(bytes);
  jsonScanner(text, limits, desc)(text.length);
  return parseText(text);
}

/** Characters scanned between two readings of the clock: a few milliseconds at most. */
const STEP = 2 ** 18;

/** Resolves with the same in several ticks of the event loop. */
export async function parseLongJson(
  bytes: Uint8Array,
  limits: ValueLimits,
  desc?: DescMessage,
  step = STEP,
): Promise<JsonValue> {
  const text = decodeUtf8(bytes);
  const scan = jsonScanner(text, limits, desc);
  await repeatInSlices(() => scan(step));
  await nextTick();
  return parseText(text);
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidArgument(BODY, "is not UTF-8", "INVALID_CHARACTER");
  }
}

/** Throws `INVALID_ARGUMENT` for any other JSON. */
export function requireObject(json: JsonValue): JsonObject {
  if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object", "WRONG_TYPE");
  return json;
}

/** Returns the message of a JSON object. Throws `INVALID_ARGUMENT` with the fields at fault. */
export function readJson<D extends DescMessage>(desc: D, json: JsonObject, registry?: Registry): MessageShape<D> {
  const options = { ...JSON_OPTIONS, registry };
  let message: MessageShape<D>;
  try {
    message = fromJson(desc, json, options);
  } catch {
    const violations = findViolations(desc, json, options).take(MAX_VIOLATIONS).toArray();
    if (violations.length === 0) throw invalidArgument(BODY, "is not valid");
    throw invalidArguments(violations);
  }
  const violations = impossibleTimes(desc, json).take(MAX_VIOLATIONS).toArray();
  if (violations.length > 0) throw invalidArguments(violations);
  return message;
}

const GIVEN_TWICE = "is given twice, under two names";

type Violations = Generator<FieldViolation, void, undefined>;

/** Finds the values that `fromJson` refuses by reading parts separately: its errors have no path, and quote values. */
function findViolations(desc: DescMessage, json: JsonValue, options: JsonReadOptions): Violations {
  return inMessage(desc, json, "");

  function* inMessage(message: DescMessage, value: JsonValue, path: string): Violations {
    if (!isJsonObject(value)) return yield { field: path, description: "must be an object", reason: "WRONG_TYPE" };
    const seen = new Set<DescField>();
    for (const [name, member] of Object.entries(value)) {
      const field = findField(message, name);
      const memberPath = joinJsonPath(path, field ?? name, message);
      if (field === undefined) yield unknownField(memberPath, name, message);
      else if (seen.has(field)) yield { field: memberPath, description: GIVEN_TWICE, reason: "DUPLICATE_FIELD" };
      else if (!isReadable(field, member, options)) yield* inField(field, member, memberPath);
      if (field !== undefined) seen.add(field);
    }
  }

  function* inField(field: DescField, value: JsonValue, path: string): Violations {
    if (field.fieldKind === "list") yield* inList(field, value, path);
    else if (field.fieldKind === "map") yield* inMap(field, value, path);
    else yield* inValue(field, value, path);
  }

  function* inList(field: DescField, value: JsonValue, path: string): Violations {
    if (!Array.isArray(value)) return yield { field: path, description: "must be an array", reason: "WRONG_TYPE" };
    for (const [index, item] of value.entries()) {
      if (!isReadable(field, [item], options)) yield* inValue(field, item, joinJsonPath(path, index));
    }
  }

  function* inMap(field: DescField, value: JsonValue, path: string): Violations {
    if (!isJsonObject(value)) return yield { field: path, description: "must be an object", reason: "WRONG_TYPE" };
    for (const [key, entry] of Object.entries(value)) {
      if (isReadable(field, Object.fromEntries([[key, entry]]), options)) continue;
      const [badKey] = textViolationsIn(path, key);
      if (badKey === undefined) yield* inValue(field, entry, joinJsonPath(path, key));
      else yield badKey;
    }
  }

  function* inValue(field: DescField, value: JsonValue, path: string): Violations {
    if (valueForm(field) === undefined && field.message !== undefined)
      return yield* inMessage(field.message, value, path);
    yield textViolationsIn(path, value)[0] ?? notOfForm(field, value, path);
  }
}

function isReadable(field: DescField, json: JsonValue, options: JsonReadOptions): boolean {
  try {
    fromJson(field.parent, { [field.name]: json }, options);
    return true;
  } catch {
    return false;
  }
}
