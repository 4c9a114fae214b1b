import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { isPlainObject } from "./plain-json.ts";
import { quote } from "./quote.ts";
import { UNUSUAL } from "./unusual.ts";

/** The JSON text of a value. Throws `UNUSUAL` where the generic way is to be asked. */
export type WriteValue = (value: unknown) => string;

/** Finds the writer of a message, which may not be complete while writers are being made. */
export type MessageWriters = (desc: DescMessage) => WriteValue;

/** The writer of a field's value, of its items if it is a list, of its values if it is a map. Undefined for a kind not known. */
export function valueWriter(field: DescField, writerOf: MessageWriters): WriteValue | undefined {
  if (field.scalar !== undefined) return SCALARS.get(field.scalar);
  if (field.enum !== undefined) return field.enum.typeName === NULL_VALUE ? undefined : enumWriter(field.enum);
  if (field.message === undefined || (field.fieldKind === "message" && WRAPPER.test(field.message.typeName))) {
    return undefined;
  }
  // A field has a Struct as the JSON object that it is (protobuf-es).
  return field.message.typeName === StructSchema.typeName ? writeStruct : writerOf(field.message);
}

const NULL_VALUE = "google.protobuf.NullValue";

/** Of which a field that is no list has the value alone. */
const WRAPPER = /^google\.protobuf\.\w+Value$/;

export const writeString: WriteValue = (value) => {
  if (typeof value !== "string") throw UNUSUAL;
  return quote(value);
};

const writeBool: WriteValue = (value) => {
  if (typeof value !== "boolean") throw UNUSUAL;
  return value ? "true" : "false";
};

const writeNumber: WriteValue = (value) => {
  if (!Number.isFinite(value)) throw UNUSUAL;
  return String(value);
};

const SCALARS: ReadonlyMap<ScalarType, WriteValue> = new Map([
  [ScalarType.STRING, writeString],
  [ScalarType.BOOL, writeBool],
  [ScalarType.INT32, writeNumber],
  [ScalarType.SINT32, writeNumber],
  [ScalarType.SFIXED32, writeNumber],
  [ScalarType.UINT32, writeNumber],
  [ScalarType.FIXED32, writeNumber],
]);

function enumWriter({ values }: DescEnum): WriteValue {
  const names = new Map<unknown, string>(values.map(({ number, jsonName }) => [number, JSON.stringify(jsonName)]));
  return (value) => names.get(value) ?? writeNumber(value);
}

const writeStruct: WriteValue = (value) => {
  if (!isPlainObject(value)) throw UNUSUAL;
  return JSON.stringify(value);
};
