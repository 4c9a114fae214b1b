import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { FieldViolation, InvalidReason } from "../../../domain/errors.ts";

const fieldsByName = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** A field by its name in the proto or in lowerCamelCase. */
export function findField(desc: DescMessage, name: string): DescField | undefined {
  const known = fieldsByName.get(desc);
  if (known !== undefined) return known.get(name);
  const index = new Map(
    desc.fields.flatMap((field) => [field.jsonName, field.name].map((one) => [one, field] as const)),
  );
  fieldsByName.set(desc, index);
  return index.get(name);
}

/** Returns the names of the fields of a message, as in the proto. */
export function fieldNames({ fields }: DescMessage): string[] {
  return fields.map(({ name }) => name);
}

/** The name under which an object has a field, or would have it. */
export function nameIn(json: JsonObject, { name, jsonName }: DescField): string {
  return Object.hasOwn(json, jsonName) ? jsonName : name;
}

/** The value of a field in an object; null, as in ProtoJSON, if it is absent. */
export function valueIn(json: JsonObject, field: DescField): JsonValue {
  return json[nameIn(json, field)] ?? null;
}

/** By scalar type or the name of a well-known type, which ProtoJSON writes in a way of its own. */
const FORMS: ReadonlyMap<ScalarType | string | undefined, string> = new Map<ScalarType | string, string>([
  [ScalarType.INT32, "a 32-bit integer"],
  [ScalarType.BOOL, "true or false"],
  [ScalarType.STRING, "a string"],
  ["google.protobuf.Timestamp", "an RFC 3339 time such as 2030-01-02T03:04:05Z"],
  ["google.protobuf.FieldMask", "field names with commas between"],
  ["google.protobuf.Struct", "an object"],
]);

/** Completes "must be …" for a field's value, or each of its values. Undefined for a message that is written field by field. */
export function valueForm({ scalar, enum: desc, message }: DescField): string | undefined {
  if (desc !== undefined) return `one of ${desc.values.map(({ name }) => name).join(", ")}`;
  if (message !== undefined && !message.typeName.startsWith("google.protobuf.")) return undefined;
  return FORMS.get(scalar ?? message?.typeName) ?? "a valid value";
}

/** Returns the violation of a value that is not of the form of its field. */
export function notOfForm(field: DescField, value: JsonValue, path = field.name): FieldViolation {
  return { field: path, description: `must be ${valueForm(field)}`, reason: reasonOf(field, value) };
}

/** The messages that ProtoJSON writes as a string. */
const TEXT_FORMS: ReadonlySet<string | undefined> = new Set([TimestampSchema.typeName, FieldMaskSchema.typeName]);

function reasonOf({ scalar, enum: desc, message }: DescField, value: JsonValue): InvalidReason {
  if (typeof value !== "string" && typeof value !== "number") return "WRONG_TYPE";
  if (desc !== undefined) return "UNKNOWN_ENUM_VALUE";
  // ProtoJSON accepts a number as a string.
  if (scalar === ScalarType.INT32 && Math.abs(Number(value)) >= 2 ** 31) return "OUT_OF_RANGE";
  return typeof value === "string" && TEXT_FORMS.has(message?.typeName) ? "INVALID_FORMAT" : "WRONG_TYPE";
}
