import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import type { BodyRule } from "./binding.ts";
import { findField, notOfForm } from "./field-path.ts";
import { BODY } from "./json-text.ts";
import { fieldMaskToJson } from "./value-form.ts";

type ContentRule = Exclude<BodyRule, { kind: "none" }>;

/** The JSON of the request message that a body makes by its rule. Throws `INVALID_ARGUMENT` if the body does not fit the rule. */
export function bodyToRequestJson(desc: DescMessage, rule: ContentRule, body: JsonValue): JsonObject {
  switch (rule.kind) {
    case "whole":
      return requireObject(body);
    case "field":
      return { [rule.field.name]: body };
    case "either":
      return isWrapped(desc, rule.field, body) ? requireObject(body) : { [rule.field.name]: body };
  }
}

/**
 * Whether the body is the whole request rather than its one field. `{}` is that field, without values. A name that only the
 * request knows tells, so that a misspelt one beside it is found where it stands.
 */
function isWrapped(desc: DescMessage, { message: resource }: DescField, body: JsonValue): boolean {
  if (!isJsonObject(body)) return false;
  const names = Object.keys(body);
  const ofRequest = names.filter((name) => findField(desc, name) !== undefined);
  const isOfResource = (name: string) => resource !== undefined && findField(resource, name) !== undefined;
  return ofRequest.length > 0 && (ofRequest.length === names.length || !ofRequest.every(isOfResource));
}

function requireObject(body: JsonValue): JsonObject {
  if (!isJsonObject(body)) throw invalidArgument(BODY, "must be a JSON object");
  return body;
}

/**
 * The JSON with the request's own field masks as ProtoJSON has them, which takes lowerCamelCase alone. Throws
 * `INVALID_ARGUMENT` if a text is no field mask.
 */
export function withFieldMasks(masks: readonly DescField[], json: JsonObject): JsonObject {
  const converted = masks.flatMap((field) => maskMembers(field, json));
  return converted.length === 0 ? json : { ...json, ...Object.fromEntries(converted) };
}

function maskMembers(field: DescField, json: JsonObject): readonly (readonly [name: string, mask: string])[] {
  return [field.name, field.jsonName].flatMap((name) => {
    const text = json[name];
    if (typeof text !== "string") return [];
    const mask = fieldMaskToJson(text);
    if (mask === undefined) throw notOfForm([field]);
    return [[name, mask] as const];
  });
}
