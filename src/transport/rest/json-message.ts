import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  type Registry,
} from "@bufbuild/protobuf";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { findViolation } from "./json-violation.ts";
import { BODY, checkedLongText, MAX_JSON_DEPTH, parseJson, parseText, type ValueLimits } from "./strict-json.ts";

/** The form of JSON over every protocol (contract §2). */
export const JSON_OPTIONS = {
  useProtoFieldName: true,
  alwaysEmitImplicit: true,
  ignoreUnknownFields: false,
  // A message decoder may count a level of JSON twice.
  recursionLimit: 2 * MAX_JSON_DEPTH,
};

/** Reads a message from its JSON in UTF-8. Throws `INVALID_ARGUMENT`, naming the field at fault if there is one. */
export function readJsonMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  limits: ValueLimits,
  registry?: Registry,
): MessageShape<D> {
  return readJson(desc, requireObject(parseJson(bytes, { limits, desc })), registry);
}

/** From so many bytes on a message is read in several turns of the event loop. */
export const LONG = 2 ** 17;

/** `readJsonMessage` for a message of any length: a long one is promised. */
export function readJsonOfAnyLength<D extends DescMessage>(
  ...args: Parameters<typeof readJsonMessage<D>>
): MaybePromise<MessageShape<D>> {
  return args[1].length < LONG ? readJsonMessage(...args) : readLongJsonMessage(...args);
}

/** Rejects what `readJsonMessage` throws. Long texts are read in several turns of the event loop, so that other calls are served. */
async function readLongJsonMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  limits: ValueLimits,
  registry?: Registry,
): Promise<MessageShape<D>> {
  const text = await checkedLongText(bytes, { limits, desc });
  await nextTurn();
  const json = requireObject(parseText(text));
  await nextTurn();
  const message = readJson(desc, json, registry);
  await nextTurn();
  return message;
}

/** Throws `INVALID_ARGUMENT` for any other JSON. */
export function requireObject(json: JsonValue): JsonObject {
  if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object");
  return json;
}

/** The message of a JSON object. Throws `INVALID_ARGUMENT` naming the field where it is none. */
export function readJson<D extends DescMessage>(desc: D, json: JsonObject, registry?: Registry): MessageShape<D> {
  const options = { ...JSON_OPTIONS, registry };
  try {
    return fromJson(desc, json, options);
  } catch {
    const { field, description } = findViolation(desc, json, options) ?? { field: BODY, description: "is not valid" };
    throw invalidArgument(field, description);
  }
}
