import { type DescField, ScalarType } from "@bufbuild/protobuf";
import { isFields, UNUSUAL } from "./unusual.ts";
import { type MessageReaders, type ReadValue, readString, valueReader } from "./value-reader.ts";

/** The reader of a field that is in no oneof. Undefined for a kind not known. */
export function fieldReader(field: DescField, readerOf: MessageReaders): ReadValue | undefined {
  const read = valueReader(field, readerOf);
  if (read === undefined || field.oneof !== undefined || field.localName === "__proto__") return undefined;
  if (field.fieldKind === "list") return listReader(read);
  if (field.fieldKind === "map") return field.mapKey === ScalarType.STRING ? mapReader(read) : undefined;
  return read;
}

/** The array itself, with its items in their local form. */
function listReader(read: ReadValue): ReadValue {
  return (json, tally) => {
    if (!Array.isArray(json)) throw UNUSUAL;
    for (let i = 0; i < json.length; i++) json[i] = read(json[i], tally);
    return json;
  };
}

/** The object itself, with its values in their local form. */
function mapReader(read: ReadValue): ReadValue {
  return (json, tally) => {
    if (!isFields(json)) throw UNUSUAL;
    for (const key of Object.keys(json)) {
      readString(key, tally);
      json[key] = read(json[key], tally);
    }
    return json;
  };
}
