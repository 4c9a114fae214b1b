import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { type Fields, isFields, UNUSUAL } from "./unusual.ts";

/** What has been read of a text. */
export interface Tally {
  /** Strings, names among them. */
  strings: number;
}

/** The local value of what `JSON.parse` gave, which may be used up for it. Throws `UNUSUAL` on any that is not the plain form. */
export type ReadValue = (json: unknown, tally: Tally) => unknown;

/** Finds the reader of a message, which may not be complete while readers are being made. */
export type MessageReaders = (desc: DescMessage) => ReadValue;

/** The reader of a field's value, of its items if it is a list, of its values if it is a map. Undefined for a kind not known. */
export function valueReader(field: DescField, readerOf: MessageReaders): ReadValue | undefined {
  if (field.scalar !== undefined) return SCALARS.get(field.scalar);
  if (field.enum !== undefined) return field.enum.open ? enumReader(field.enum) : undefined;
  if (field.message?.typeName === StructSchema.typeName) return readStruct;
  if (field.message === undefined || field.message.typeName.startsWith("google.protobuf.")) return undefined;
  return readerOf(field.message);
}

/** protobuf-es refuses lone surrogates. */
export const readString: ReadValue = (json, tally) => {
  if (typeof json !== "string" || !json.isWellFormed()) throw UNUSUAL;
  tally.strings++;
  return json;
};

const readBool: ReadValue = (json) => {
  if (typeof json !== "boolean") throw UNUSUAL;
  return json;
};

const readInt32: ReadValue = (json) => {
  if (typeof json !== "number" || (json | 0) !== json) throw UNUSUAL;
  return json;
};

const SCALARS: ReadonlyMap<ScalarType, ReadValue> = new Map([
  [ScalarType.STRING, readString],
  [ScalarType.BOOL, readBool],
  [ScalarType.INT32, readInt32],
]);

function enumReader({ values }: DescEnum): ReadValue {
  const numbers = new Map<unknown, number>(values.map(({ name, number }) => [name, number]));
  return (json, tally) => {
    const number = numbers.get(json);
    if (number === undefined) throw UNUSUAL;
    tally.strings++;
    return number;
  };
}

/** A field has a Struct as the JSON object that it is (protobuf-es). */
const readStruct: ReadValue = (json, tally) => {
  if (!isFields(json)) throw UNUSUAL;
  countMembers(json, tally);
  return json;
};

function countMembers(json: Fields, tally: Tally): void {
  for (const name of Object.keys(json)) {
    tally.strings++;
    countValue(json[name], tally);
  }
}

function countValue(json: unknown, tally: Tally): void {
  if (typeof json === "string") tally.strings++;
  else if (Array.isArray(json)) for (const item of json) countValue(item, tally);
  else if (isFields(json)) countMembers(json, tally);
}
