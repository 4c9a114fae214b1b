import type { DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import type { BodyRule } from "./binding.ts";
import { findField } from "./field-path.ts";
import { BODY, isJsonObject } from "./json-text.ts";
import { fieldMaskToJson } from "./value-form.ts";

/**
 * The JSON of the request message that a body makes by its rule; `body` is undefined where there is none. Throws
 * `INVALID_ARGUMENT` if the body does not fit the rule.
 */
export function bodyToRequestJson(desc: DescMessage, rule: BodyRule, body: JsonValue | undefined): JsonObject {
  if (body === undefined) return {};
  switch (rule.kind) {
    case "none":
      return {};
    case "whole":
      return requireObject(body);
    case "field":
      return { [rule.field.name]: body };
    case "either":
      return isWrapped(desc, body) ? requireObject(body) : { [rule.field.name]: body };
  }
}

/** Whether the body is the whole request rather than its one field. `{}` is that field, without values. */
function isWrapped(desc: DescMessage, body: JsonValue): boolean {
  if (!isJsonObject(body)) return false;
  const names = Object.keys(body);
  return names.length > 0 && names.every((name) => findField(desc, name) !== undefined);
}

function requireObject(body: JsonValue): JsonObject {
  if (!isJsonObject(body)) throw invalidArgument(BODY, "must be a JSON object");
  return body;
}

/** The JSON with the request's own field masks as ProtoJSON has them, which takes lowerCamelCase alone. */
export function withFieldMasks(maskNames: readonly string[], json: JsonObject): JsonObject {
  const masks = maskNames.flatMap((name): [string, string][] => {
    const text = Object.hasOwn(json, name) ? json[name] : undefined;
    const converted = typeof text === "string" ? fieldMaskToJson(text) : undefined;
    return converted === undefined ? [] : [[name, converted]];
  });
  return masks.length === 0 ? json : { ...json, ...Object.fromEntries(masks) };
}
