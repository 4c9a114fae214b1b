import { type DescField, type DescMessage, fromJson, type JsonReadOptions, type JsonValue } from "@bufbuild/protobuf";
import { textViolationsIn } from "../../api/text.ts";
import type { FieldViolation } from "../../errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { findField } from "./field-path.ts";
import { joinJsonPath } from "./json-text.ts";
import { keyForm, valueForm } from "./value-form.ts";

type MapField = DescField & { fieldKind: "map" };

/**
 * Where JSON that `fromJson` has refused is wrong. It walks the JSON beside the descriptor, since `fromJson` tells the type
 * but not the path, and its messages quote values, which may be secrets. Undefined if the walk finds nothing.
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
      const found = inMembership(field, member, memberPath, seen) ?? inField(field, member, memberPath);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function inField(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    if (field.fieldKind === "list") return inList(field, value, path);
    if (field.fieldKind === "map") return inMap(field, value, path);
    return inValue(field, value, path, value);
  }

  function inList(field: DescField, value: JsonValue, path: string): FieldViolation | undefined {
    if (value === null) return undefined;
    if (!Array.isArray(value)) return { field: path, description: "must be an array" };
    return firstOf(value, (item, index) => inValue(field, item, joinJsonPath(path, index), [item]));
  }

  function inMap(field: MapField, value: JsonValue, path: string): FieldViolation | undefined {
    if (value === null) return undefined;
    if (!isJsonObject(value)) return { field: path, description: "must be an object" };
    const { expected, fromText } = keyForm(field);
    return firstOf(Object.entries(value), ([key, entry]) => {
      const entryPath = joinJsonPath(path, key);
      if (fromText(key) === undefined) return { field: entryPath, description: `has a key that is not ${expected}` };
      const [unstorable] = textViolationsIn(path, key);
      return unstorable ?? inValue(field, entry, entryPath, Object.fromEntries([[key, entry]]));
    });
  }

  /** `whole` is `value` in the place where the field has it: itself, or as the one item of a list or map. */
  function inValue(field: DescField, value: JsonValue, path: string, whole: JsonValue): FieldViolation | undefined {
    const form = valueForm(field);
    if (form === undefined && field.message !== undefined && value !== null)
      return inMessage(field.message, value, path);
    const expected = form?.expected ?? "an object";
    if (isReadable(field, whole, options)) return undefined;
    const [unstorable] = textViolationsIn(path, value);
    return unstorable ?? { field: path, description: `must be ${expected}` };
  }
}

/** Refuses a field that is given under both of its names, and a second member of a oneof. */
function inMembership(
  field: DescField,
  value: JsonValue,
  path: string,
  seen: Set<DescField>,
): FieldViolation | undefined {
  if (seen.has(field)) return { field: path, description: "is given twice, under two names" };
  // ProtoJSON takes a null scalar in a oneof for absent.
  if (value === null && field.fieldKind === "scalar") return undefined;
  const other = [...seen].find(({ oneof }) => oneof !== undefined && oneof === field.oneof);
  if (other !== undefined) return { field: path, description: `may not be set together with ${other.name}` };
  seen.add(field);
  return undefined;
}

function isReadable(field: DescField, json: JsonValue, options: JsonReadOptions): boolean {
  try {
    fromJson(field.parent, { [field.name]: json }, options);
    return true;
  } catch {
    return false;
  }
}

function firstOf<T>(
  items: readonly T[],
  find: (item: T, index: number) => FieldViolation | undefined,
): FieldViolation | undefined {
  for (const [index, item] of items.entries()) {
    const found = find(item, index);
    if (found !== undefined) return found;
  }
  return undefined;
}
