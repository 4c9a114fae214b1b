import { create, type DescMessage } from "@bufbuild/protobuf";
import { fieldReader } from "./field-reader.ts";
import { type Fields, isFields, UNUSUAL } from "./unusual.ts";
import type { MessageReaders, ReadValue } from "./value-reader.ts";

/** Makes the reader of a message when it is first asked for. */
export function messageReaders(): MessageReaders {
  const made = new Map<DescMessage, ReadValue>();
  const readerOf: MessageReaders = (desc) => made.get(desc) ?? make(desc);
  const make = (desc: DescMessage): ReadValue => {
    // Some of Google's own have a form of their own.
    if (desc.typeName.startsWith("google.protobuf.")) return readNothing;
    const rows = new Map<string, Row>();
    const read = messageReader(desc, rows);
    // Noted before its fields are: a message may be in itself.
    made.set(desc, read);
    addRows(rows, desc, readerOf);
    return read;
  };
  return readerOf;
}

const readNothing: ReadValue = () => {
  throw UNUSUAL;
};

/** A field under one of its names. */
interface Row {
  readonly localName: string;
  readonly read: ReadValue;
  /** Under the name in lowerCamelCase: that in the proto, which may not be given as well. */
  readonly protoName: string | undefined;
}

function addRows(rows: Map<string, Row>, { fields }: DescMessage, readerOf: MessageReaders): void {
  for (const field of fields) {
    const read = fieldReader(field, readerOf);
    if (read === undefined) continue;
    const { localName, name, jsonName } = field;
    rows.set(name, { localName, read, protoName: undefined });
    if (jsonName !== name) rows.set(jsonName, { localName, read, protoName: name });
  }
}

function messageReader(desc: DescMessage, rows: ReadonlyMap<string, Row>): ReadValue {
  return (json, tally) => {
    const message: unknown = create(desc);
    if (!isFields(json) || !isFields(message)) throw UNUSUAL;
    for (const name of Object.keys(json)) {
      const { localName, read } = rowOf(rows, name, json);
      message[localName] = read(json[name], tally);
      tally.strings++;
    }
    return message;
  };
}

function rowOf(rows: ReadonlyMap<string, Row>, name: string, json: Fields): Row {
  const row = rows.get(name);
  if (row === undefined) throw UNUSUAL;
  if (row.protoName !== undefined && Object.hasOwn(json, row.protoName)) throw UNUSUAL;
  return row;
}
