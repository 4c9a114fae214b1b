import {
  create,
  type DescField,
  type DescMessage,
  type JsonWriteOptions,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { Edition, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { onceFrozen } from "../../lib/once-frozen.ts";
import { fieldWriter, type WriteField } from "./field-writer.ts";
import { timestampText } from "./timestamp-text.ts";
import { type Fields, isFields, orGeneric, UNUSUAL } from "./unusual.ts";
import type { MessageWriters, WriteValue } from "./value-writer.ts";

export interface JsonWriterOptions {
  /** Types for `google.protobuf.Any` and extensions. */
  readonly registry: Registry;
}

/** A message, or a plain object that `create` makes one of. */
export type MessageInit = object;

/**
 * Makes the function that writes messages of a type, or the plain objects that `create` takes for them, as JSON in snake_case with
 * every field that cannot be absent (contract §2). Its text, and its error, is that of `JSON.stringify(toJson(desc, create(desc,
 * init), …))`, without the message and the JSON value in between. The one difference: a plain object within a message, which
 * the type forbids, is written. What is frozen, through and through, is written once.
 */
export function compileJsonWriter(desc: DescMessage, { registry }: JsonWriterOptions): (init: MessageInit) => string {
  const options: Options = { registry, useProtoFieldName: true, alwaysEmitImplicit: true };
  return orGeneric(messageWriters(options)(desc), genericWriter(desc, options));
}

type Options = Partial<JsonWriteOptions>;

function messageWriters(options: Options): MessageWriters {
  const made = new Map<DescMessage, WriteValue>();
  const writerOf: MessageWriters = (desc) => made.get(desc) ?? make(desc);
  const make = (desc: DescMessage): WriteValue => {
    let write = writeNothing;
    // For a message that is in itself.
    made.set(desc, (value) => write(value));
    write = messageWriter(desc, writerOf, options);
    made.set(desc, write);
    return write;
  };
  return writerOf;
}

const writeNothing: WriteValue = () => {
  throw UNUSUAL;
};

function messageWriter(desc: DescMessage, writerOf: MessageWriters, options: Options): WriteValue {
  if (desc.typeName === TimestampSchema.typeName) return timestampWriter(desc);
  const writers = isPlain(desc) ? byNumber(desc).map((field) => fieldWriter(field, writerOf)) : [undefined];
  return writers.every((write) => write !== undefined) ? fieldsWriter(desc, writers) : genericWriter(desc, options);
}

/**
 * Not one of Google's own, some of which ProtoJSON writes in a way of their own; of proto3, which has no extensions and no
 * presence by prototypes (protobuf-es).
 */
function isPlain({ file, typeName, fields }: DescMessage): boolean {
  const isProto3 = file.edition === Edition.EDITION_PROTO3 && !typeName.startsWith("google.protobuf.");
  return isProto3 && fields.every(({ oneof, name }) => oneof === undefined && name !== "__proto__");
}

function byNumber({ fields }: DescMessage): readonly DescField[] {
  return fields.toSorted((a, b) => a.number - b.number);
}

function fieldsWriter({ typeName }: DescMessage, writers: readonly WriteField[]): WriteValue {
  const writeFields = onceFrozen((message: Fields) => {
    let text = "{";
    for (const write of writers) text = write(message, text);
    return `${text}}`;
  });
  return (value) => writeFields(requireType(typeName, value));
}

function timestampWriter({ typeName }: DescMessage): WriteValue {
  return (value) => `"${timestampText(requireType(typeName, value))}"`;
}

function requireType(typeName: string, value: unknown): Fields {
  if (!isFields(value) || (value.$typeName ?? typeName) !== typeName) throw UNUSUAL;
  return value;
}

function genericWriter(desc: DescMessage, options: Options): WriteValue {
  return (value) => {
    if (!isFields(value)) throw UNUSUAL;
    return JSON.stringify(toJson(desc, create(desc, value), options));
  };
}
