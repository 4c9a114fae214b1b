import { type DescEnum, type DescField, type JsonValue, ScalarType } from "@bufbuild/protobuf";

/** How one value (of a repeated field: one item) is written. */
export interface ValueForm {
  /** Completes "must be …". */
  readonly expected: string;
  /** The JSON of the value that a query writes as text; undefined if the text writes none. */
  readonly fromText: (text: string) => JsonValue | undefined;
}

const asIs = (text: string) => text;
const noText = () => undefined;

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

/** For types that no request of ours has. */
const OTHER: ValueForm = { expected: "a valid value", fromText: noText };

const SCALARS: ReadonlyMap<ScalarType, ValueForm> = new Map([
  // ProtoJSON takes a number as a string too, and looks after its range.
  [
    ScalarType.INT32,
    { expected: "a 32-bit integer", fromText: (text) => (/^-?\d{1,20}$/.test(text) ? text : undefined) },
  ],
  [ScalarType.BOOL, { expected: "true or false", fromText: (text) => BOOLEANS.get(text) }],
  [ScalarType.STRING, { expected: "a string", fromText: asIs }],
]);

/** Well-known types, which ProtoJSON writes in a way of their own. */
const WELL_KNOWN: ReadonlyMap<string, ValueForm> = new Map([
  ["google.protobuf.Timestamp", { expected: "an RFC 3339 time such as 2030-01-02T03:04:05Z", fromText: asIs }],
  ["google.protobuf.FieldMask", { expected: "field names with commas between", fromText: asIs }],
  ["google.protobuf.Struct", { expected: "an object", fromText: noText }],
]);

/**
 * The form of a field's value, of its items if it is a list, of its values if it is a map. Undefined for a message that is
 * written field by field.
 */
export function valueForm({ scalar, enum: desc, message }: DescField): ValueForm | undefined {
  if (scalar !== undefined) return SCALARS.get(scalar) ?? OTHER;
  if (desc !== undefined) return enumForm(desc);
  if (message?.typeName.startsWith("google.protobuf.")) return WELL_KNOWN.get(message.typeName) ?? OTHER;
  return undefined;
}

function enumForm({ values }: DescEnum): ValueForm {
  const names = values.map(({ name }) => name);
  return { expected: `one of ${names.join(", ")}`, fromText: (text) => (names.includes(text) ? text : undefined) };
}
