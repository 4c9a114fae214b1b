import { type DescField, type DescMessage, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { FieldMaskSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import type { FieldViolation, InvalidReason } from "../../../domain/errors.ts";
import { memoizeByIdentity } from "../../../lib/memoize.ts";
import { suggestion } from "../../../lib/nearest-name.ts";
import { redactName } from "../../../lib/redact-name.ts";

/** Returns the field with this name in the proto or in lowerCamelCase. */
export function findField(desc: DescMessage, name: string): DescField | undefined {
  return fieldsOf(desc).get(name);
}

const fieldsOf = memoizeByIdentity(
  ({ fields }: DescMessage) =>
    new Map(fields.flatMap((field) => [field.jsonName, field.name].map((name) => [name, field]))),
);

/** Returns the name under which an object has a field, or would have it. */
export function nameIn(json: JsonObject, { name, jsonName }: DescField): string {
  return Object.hasOwn(json, jsonName) ? jsonName : name;
}

/** Returns the value of a field in an object; null, as in ProtoJSON, if it is absent. */
export function valueIn(json: JsonObject, field: DescField): JsonValue {
  return json[nameIn(json, field)] ?? null;
}

/** By scalar type or the name of a well-known type, which ProtoJSON writes in a way of its own. */
const FORMS: ReadonlyMap<ScalarType | string | undefined, string> = new Map<ScalarType | string, string>([
  [ScalarType.INT32, "a 32-bit integer"],
  [ScalarType.BOOL, "true or false"],
  [ScalarType.STRING, "a string"],
  ["google.protobuf.Timestamp", "an RFC 3339 time such as 2030-01-02T03:04:05Z"],
  ["google.protobuf.FieldMask", "field names separated by commas"],
  ["google.protobuf.Struct", "an object"],
]);

/** Whether ProtoJSON writes a message in a form of its own, and not field by field. */
export function isWellKnown({ typeName }: DescMessage): boolean {
  return typeName.startsWith("google.protobuf.");
}

/** Completes "must be …" for a field's value, or each of its values. Undefined for a message that is written field by field. */
export function valueForm({ scalar, enum: desc, message }: DescField): string | undefined {
  if (desc !== undefined) return `one of ${desc.values.map(({ name }) => name).join(", ")}`;
  if (message !== undefined && !isWellKnown(message)) return undefined;
  return FORMS.get(scalar ?? message?.typeName) ?? "a valid value";
}

/** Returns the violation of a value that does not have the form of its field. */
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

/** Returns the violation of a member of a message that has no field of this name. */
export function unknownField(parent: string, name: string, desc: DescMessage): FieldViolation {
  const names = desc.fields.map(({ name }) => name);
  const description = `is not a known field${suggestion(name, names)}`;
  return { field: joinJsonPath(parent, redactName(name, names)), description, reason: "UNKNOWN_FIELD" };
}

/** Adds a name or an index to a path such as `requests[3].metadata.team`. A name that is not an identifier goes in brackets. */
export function joinJsonPath(parent: string, step: string | number): string {
  if (typeof step === "number") return `${parent}[${step}]`;
  if (!/^[\w-]+$/.test(step)) return `${parent}[${JSON.stringify(step)}]`;
  return parent === "" ? step : `${parent}.${step}`;
}
