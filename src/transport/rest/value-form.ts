import { type DescEnum, type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";

/** How one value (of a repeated field: one item) is written. */
export interface ValueForm {
  /** Completes "must be …". */
  readonly expected: string;
  /** The JSON of the value that a path or query writes as text; undefined if the text writes none. */
  readonly fromText: (text: string) => JsonValue | undefined;
}

const noText = () => undefined;

function matching(expected: string, pattern: RegExp): ValueForm {
  return { expected, fromText: (text) => (pattern.test(text) ? text : undefined) };
}

// ProtoJSON takes a number as a string too, and looks after its range.
const integer = (expected: string) => matching(expected, /^-?\d{1,20}$/);
const float = matching("a number", /^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity)$/);
const INT32 = integer("a 32-bit integer");
const UINT32 = integer("an unsigned 32-bit integer");
const INT64 = integer("a 64-bit integer");
const UINT64 = integer("an unsigned 64-bit integer");

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["false", false],
]);

const SCALARS: Readonly<Record<ScalarType, ValueForm>> = {
  [ScalarType.DOUBLE]: float,
  [ScalarType.FLOAT]: float,
  [ScalarType.INT64]: INT64,
  [ScalarType.UINT64]: UINT64,
  [ScalarType.INT32]: INT32,
  [ScalarType.FIXED64]: UINT64,
  [ScalarType.FIXED32]: UINT32,
  [ScalarType.BOOL]: { expected: "true or false", fromText: (text) => BOOLEANS.get(text) },
  [ScalarType.STRING]: { expected: "a string", fromText: (text) => text },
  [ScalarType.BYTES]: matching("bytes in base64", /^[\w+/-]*={0,2}$/),
  [ScalarType.UINT32]: UINT32,
  [ScalarType.SFIXED32]: INT32,
  [ScalarType.SFIXED64]: INT64,
  [ScalarType.SINT32]: INT32,
  [ScalarType.SINT64]: INT64,
};

/** Well-known types that ProtoJSON writes in a way of their own; the wrappers are as the scalar that they wrap. */
const WELL_KNOWN: ReadonlyMap<string, ValueForm> = new Map([
  ["google.protobuf.Timestamp", matching("an RFC 3339 time such as 2030-01-02T03:04:05Z", /./)],
  ["google.protobuf.Duration", matching("a duration in seconds such as 3.5s", /^-?\d{1,12}(?:\.\d{1,9})?s$/)],
  ["google.protobuf.FieldMask", { expected: "field names with commas between", fromText: fieldMaskToJson }],
  ["google.protobuf.Any", { expected: 'an object with "@type"', fromText: noText }],
  ["google.protobuf.Struct", { expected: "an object", fromText: noText }],
  ["google.protobuf.Value", { expected: "a JSON value", fromText: noText }],
  ["google.protobuf.ListValue", { expected: "an array", fromText: noText }],
]);

const WRAPPER = /^google\.protobuf\.(?:Double|Float|U?Int64|U?Int32|Bool|String|Bytes)Value$/;

/**
 * The form of a field's value, of its items if it is a list, of its values if it is a map. Undefined for a message that is
 * written field by field.
 */
export function valueForm(field: DescField): ValueForm | undefined {
  if (field.scalar !== undefined) return SCALARS[field.scalar];
  if (field.enum !== undefined) return enumForm(field.enum);
  return field.message === undefined ? undefined : messageForm(field.message);
}

/** The form of the keys of a map. */
export function keyForm(field: DescField & { fieldKind: "map" }): ValueForm {
  return SCALARS[field.mapKey];
}

function enumForm(desc: DescEnum): ValueForm {
  const names = desc.values.map(({ name }) => name);
  return {
    expected: `one of ${names.join(", ")}`,
    fromText: (text) => (names.includes(text) ? text : /^-?\d{1,10}$/.test(text) ? Number(text) : undefined),
  };
}

function messageForm(desc: DescMessage): ValueForm | undefined {
  const wrapped = WRAPPER.test(desc.typeName) ? desc.fields[0]?.scalar : undefined;
  return wrapped === undefined ? WELL_KNOWN.get(desc.typeName) : SCALARS[wrapped];
}

/**
 * ProtoJSON's form of a field mask that names its fields in snake_case or lowerCamelCase. Undefined if a name is empty, or
 * would be another after ProtoJSON's way into lowerCamelCase and back.
 */
export function fieldMaskToJson(text: string): string | undefined {
  if (text === "") return text;
  const paths = text.split(",");
  return paths.every(isMaskPath) ? paths.map(protoCamelCase).join(",") : undefined;
}

function isMaskPath(path: string): boolean {
  if (path === "*") return true;
  return /^[\w.]+$/.test(path) && (!path.includes("_") || protoSnakeCase(protoCamelCase(path)) === path);
}
