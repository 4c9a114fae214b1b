import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { invalidArgument } from "../errors.ts";
import { BODY, MAX_JSON_VALUES } from "./rest/json-text.ts";

/** The fields of a message that hold messages, by their numbers. */
type Shape = Map<number, Shape>;

/** No field takes less: its tag, and a value or a length. */
const MIN_FIELD_BYTES = 2;

/**
 * What refuses a binary message of more fields than JSON may have values, before it is decoded: an empty item takes two bytes and
 * three microseconds, so 16 MiB of them would take the server for half a minute. Throws `INVALID_ARGUMENT`; what is malformed
 * is left to the decoder.
 */
export function fieldBound(desc: DescMessage): (bytes: Uint8Array) => void {
  const shape = shapeOf(desc, new Map());
  return (bytes) => {
    if (bytes.length <= MAX_JSON_VALUES * MIN_FIELD_BYTES || hasFewFields(shape, bytes)) return;
    throw invalidArgument(BODY, `has more than ${MAX_JSON_VALUES} values`);
  };
}

function shapeOf(desc: DescMessage, known: Map<DescMessage, Shape>): Shape {
  const found = known.get(desc);
  if (found !== undefined) return found;
  const shape: Shape = new Map();
  // Known before it is complete, as messages may hold themselves.
  known.set(desc, shape);
  for (const field of desc.fields) {
    const inner = field.message === undefined ? undefined : shapeOf(field.message, known);
    // An entry of a map is a message itself; one of scalars counts as one field, as it does in JSON.
    if (inner !== undefined) shape.set(field.number, isMap(field) ? new Map([[MAP_VALUE, inner]]) : inner);
  }
  return shape;
}

/** The number of the value in an entry. */
const MAP_VALUE = 2;

function isMap({ fieldKind }: DescField): boolean {
  return fieldKind === "map";
}

function hasFewFields(shape: Shape, bytes: Uint8Array): boolean {
  try {
    return countFields(new BinaryReader(bytes), bytes.length, shape, 0) <= MAX_JSON_VALUES;
  } catch {
    return true;
  }
}

/** `count` and the fields up to `end`, or as many as are too many. */
function countFields(reader: BinaryReader, end: number, shape: Shape, count: number): number {
  let total = count;
  while (reader.pos < end && total <= MAX_JSON_VALUES) {
    const [number, wireType] = reader.tag();
    const inner = wireType === WireType.LengthDelimited ? shape.get(number) : undefined;
    total++;
    if (inner === undefined) reader.skip(wireType, number);
    else {
      const length = reader.uint32();
      total = countFields(reader, reader.pos + length, inner, total);
    }
  }
  return total;
}
