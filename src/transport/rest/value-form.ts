import { type DescField, ScalarType } from "@bufbuild/protobuf";

/** By scalar type or the name of a well-known type, which ProtoJSON writes in a way of its own. */
const FORMS: ReadonlyMap<ScalarType | string | undefined, string> = new Map<ScalarType | string, string>([
  [ScalarType.INT32, "a 32-bit integer"],
  [ScalarType.BOOL, "true or false"],
  [ScalarType.STRING, "a string"],
  ["google.protobuf.Timestamp", "an RFC 3339 time such as 2030-01-02T03:04:05Z"],
  ["google.protobuf.FieldMask", "field names with commas between"],
  ["google.protobuf.Struct", "an object"],
]);

/**
 * Completes "must be …" for a field's value, for its items if it is a list, for its values if it is a map. Undefined for a message that
 * is written field by field.
 */
export function valueForm({ scalar, enum: desc, message }: DescField): string | undefined {
  if (desc !== undefined) return `one of ${desc.values.map(({ name }) => name).join(", ")}`;
  if (message !== undefined && !message.typeName.startsWith("google.protobuf.")) return undefined;
  return FORMS.get(scalar ?? message?.typeName) ?? "a valid value";
}
