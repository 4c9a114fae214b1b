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
import { textViolationsIn } from "../../api/text.ts";
import { type FieldViolation, invalidArgument } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { repeatInSlices } from "../../lib/time-slices.ts";
import { findField, valueForm } from "./fields.ts";
import { BODY, joinJsonPath, jsonScanner, MAX_JSON_DEPTH, parseText, type ValueLimits } from "./scan.ts";

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
    throw invalidArgument(BODY, "is not UTF-8");
  }
}

/** Throws `INVALID_ARGUMENT` for any other JSON. */
export function requireObject(json: JsonValue): JsonObject {
  if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object");
  return json;
}

/** Returns the message of a JSON object. Throws `INVALID_ARGUMENT` with the field at fault. */
export function readJson<D extends DescMessage>(desc: D, json: JsonObject, registry?: Registry): MessageShape<D> {
  const options = { ...JSON_OPTIONS, registry };
  try {
    return fromJson(desc, json, options);
  } catch {
    const { field, description } = findViolation(desc, json, options) ?? { field: BODY, description: "is not valid" };
    throw invalidArgument(field, description);
  }
}

/** Finds the value that `fromJson` refuses by reading parts separately: its errors have no path, and quote values. */
function findViolation(desc: DescMessage, json: JsonValue, options: JsonReadOptions): FieldViolation | undefined {
  return inMessage(desc, json, "");

  function inMessage(message: DescMessage, value: JsonValue, path: string): FieldViolation | undefined {
    if (!isJsonObject(value)) return { field: path, description: "must be an object" };
    const seen = new Set<DescField>();
    for (const [name, member] of Object.entries(value)) {
      const field = findField(message, name);
      if (field === undefined) return { field: joinJsonPath(path, name), description: "is no known field" };
      const memberPath = joinJsonPath(path, field.name);
      if (seen.has(field)) return { field: memberPath, description: "is given twice, under two names" };
      seen.add(field);
      if (!isReadable(field, member, options)) return inField(field, member, memberPath);
    }
    return undefined;
  }

  function inField(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    if (field.fieldKind === "list") {
      if (!Array.isArray(value)) return { field: path, description: "must be an array" };
      const index = value.findIndex((item) => !isReadable(field, [item], options));
      return inValue(field, value[index] ?? null, joinJsonPath(path, index));
    }
    if (field.fieldKind === "map") {
      if (!isJsonObject(value)) return { field: path, description: "must be an object" };
      const bad = Object.entries(value).find((entry) => !isReadable(field, Object.fromEntries([entry]), options));
      if (bad === undefined) return undefined;
      const [key, entry] = bad;
      return textViolationsIn(path, key)[0] ?? inValue(field, entry, joinJsonPath(path, key));
    }
    return inValue(field, value, path);
  }

  function inValue(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    const form = valueForm(field);
    if (form === undefined && field.message !== undefined) return inMessage(field.message, value, path);
    return textViolationsIn(path, value)[0] ?? { field: path, description: `must be ${form}` };
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
