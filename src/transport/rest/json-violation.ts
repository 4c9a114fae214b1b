import { type DescField, type DescMessage, fromJson, type JsonReadOptions, type JsonValue } from "@bufbuild/protobuf";
import { textViolationsIn } from "../../api/text.ts";
import type { FieldViolation } from "../../domain/errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { findField, valueForm } from "./fields.ts";
import { joinJsonPath } from "./strict-json.ts";

/**
 * Where JSON that `fromJson` has refused is wrong. It goes from what `fromJson` refuses to the part of it that it refuses, since its errors
 * name the type but not the path, and quote values, which may be secrets. Undefined if the parts are fine on their own.
 */
export function findViolation(
  desc: DescMessage,
  json: JsonValue,
  options: JsonReadOptions,
): FieldViolation | undefined {
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
    if (field.fieldKind === "list") return inList(field, value, path);
    if (field.fieldKind === "map") return inMap(field, value, path);
    return inValue(field, value, path);
  }

  function inList(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    if (!Array.isArray(value)) return { field: path, description: "must be an array" };
    const index = value.findIndex((item) => !isReadable(field, [item], options));
    return inValue(field, value[index] ?? null, joinJsonPath(path, index));
  }

  function inMap(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    if (!isJsonObject(value)) return { field: path, description: "must be an object" };
    const bad = Object.entries(value).find((entry) => !isReadable(field, Object.fromEntries([entry]), options));
    if (bad === undefined) return undefined;
    const [key, entry] = bad;
    const [unstorable] = textViolationsIn(path, key);
    return unstorable ?? inValue(field, entry, joinJsonPath(path, key));
  }

  function inValue(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    const form = valueForm(field);
    if (form === undefined && field.message !== undefined) return inMessage(field.message, value, path);
    const [unstorable] = textViolationsIn(path, value);
    return unstorable ?? { field: path, description: `must be ${form}` };
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
