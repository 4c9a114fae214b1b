import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "../../errors.ts";
import { valueForm } from "./value-form.ts";

const fieldsByName = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** A field by its name in the proto or in lowerCamelCase. */
export function findField(desc: DescMessage, name: string): DescField | undefined {
  const known = fieldsByName.get(desc) ?? indexFields(desc);
  return known.get(name);
}

function indexFields(desc: DescMessage): ReadonlyMap<string, DescField> {
  const index = new Map([
    ...desc.fields.map((f) => [f.jsonName, f] as const),
    ...desc.fields.map((f) => [f.name, f] as const),
  ]);
  fieldsByName.set(desc, index);
  return index;
}

/** The name under which an object has a field, or would have it. */
export function nameIn(json: JsonObject, { name, jsonName }: DescField): string {
  return Object.hasOwn(json, jsonName) ? jsonName : name;
}

/** The value of a field in an object; null, as in ProtoJSON, if it is absent. */
export function valueIn(json: JsonObject, field: DescField): JsonValue {
  return json[nameIn(json, field)] ?? null;
}

/** The error for a value that is none of the field's. */
export function notOfForm(field: DescField): Error {
  return invalidArgument(field.name, `must be ${valueForm(field)}`);
}
