import { create, type DescField } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence as Presence } from "@bufbuild/protobuf/wkt";
import { type Fields, isFields, UNUSUAL } from "./unusual.ts";
import { type MessageWriters, valueWriter, type WriteValue, writeString } from "./value-writer.ts";

/** The text of an object with the field added, if it has a value. */
export type WriteField = (message: Fields, text: string) => string;

/** The writer of a field of proto3 that is in no oneof. Undefined for a kind not known. */
export function fieldWriter(field: DescField, writerOf: MessageWriters): WriteField | undefined {
  const write = valueWriter(field, writerOf);
  if (write === undefined) return undefined;
  if (field.fieldKind === "list") return member(field, "[]", listWriter(write));
  if (field.fieldKind === "map") return member(field, "{}", mapWriter(write));
  return member(field, textOfZero(field, write), write);
}

/** Of a field that has no value; undefined where it is left out then. */
function textOfZero({ presence, parent, localName }: DescField, write: WriteValue): string | undefined {
  return presence === Presence.IMPLICIT ? write(Reflect.get(create(parent), localName)) : undefined;
}

function member({ name, localName }: DescField, zero: string | undefined, write: WriteValue): WriteField {
  const first = `${JSON.stringify(name)}:`;
  const next = `,${first}`;
  return (message, text) => {
    const value = message[localName];
    if (value === undefined && zero === undefined) return text;
    // Nothing stands before it but the bracket.
    const start = text.length === 1 ? text + first : text + next;
    return start + (value === undefined ? zero : write(value));
  };
}

function listWriter(write: WriteValue): WriteValue {
  return (items) => {
    if (!Array.isArray(items)) throw UNUSUAL;
    if (items.length === 0) return "[]";
    let text = `[${write(items[0])}`;
    for (let i = 1; i < items.length; i++) text += `,${write(items[i])}`;
    return `${text}]`;
  };
}

function mapWriter(write: WriteValue): WriteValue {
  return (entries) => {
    if (!isFields(entries)) throw UNUSUAL;
    let text = "{";
    for (const key of Object.keys(entries)) {
      text += text.length === 1 ? writeString(key) : `,${writeString(key)}`;
      text += `:${write(entries[key])}`;
    }
    return `${text}}`;
  };
}
