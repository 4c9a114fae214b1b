import type { JsonObject, JsonValue } from "../lib/json.ts";

/** Size of the tag of a field with a number below 16, and of a double (https://protobuf.dev/programming-guides/encoding/). */
const [TAG, DOUBLE] = [1, 8];

/** Returns the bytes of a field of type `google.protobuf.Struct` with these members. */
export function structFieldSize(members: JsonObject): number {
  return lengthDelimited(structSize(members));
}

function structSize(members: JsonObject): number {
  let bytes = 0;
  for (const name in members) {
    // An entry of a map is a message with the fields key and value.
    const entry = textSize(name) + lengthDelimited(valueSize(members[name] ?? null));
    bytes += lengthDelimited(entry);
  }
  return bytes;
}

/** Size of a `google.protobuf.Value`. */
function valueSize(value: JsonValue): number {
  if (typeof value === "string") return textSize(value);
  if (typeof value === "number") return TAG + DOUBLE;
  if (typeof value === "boolean" || value === null) return TAG + 1;
  return lengthDelimited(Array.isArray(value) ? listSize(value) : structSize(value as JsonObject));
}

function listSize(items: readonly JsonValue[]): number {
  let bytes = 0;
  for (const item of items) bytes += lengthDelimited(valueSize(item));
  return bytes;
}

function textSize(text: string): number {
  return lengthDelimited(Buffer.byteLength(text));
}

/** Returns the bytes of a field whose content has this length: the length itself is a varint, 7 bits in each byte. */
function lengthDelimited(length: number): number {
  let bytes = TAG + 1 + length;
  for (let rest = length >>> 7; rest > 0; rest >>>= 7) bytes++;
  return bytes;
}
