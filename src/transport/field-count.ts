import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { invalidArgument } from "../domain/errors.ts";
import { BODY, valueLimits } from "./json/scan.ts";

/** No field takes less: its tag, and a value or a length. */
const MIN_FIELD_BYTES = 2;

/**
 * What refuses a binary message of more fields than JSON may have values, before it is decoded: an empty item takes two bytes and
 * three microseconds, so 16 MiB of them would take the server for half a minute. Throws `INVALID_ARGUMENT`; what is malformed
 * is left to the decoder.
 */
export function fieldBound(desc: DescMessage, maxRequestBytes: number): (bytes: Uint8Array) => void {
  const max = valueLimits(maxRequestBytes).values;
  return (bytes) => {
    if (bytes.length <= max * MIN_FIELD_BYTES || hasFewFields(desc, bytes, max)) return;
    throw invalidArgument(BODY, `has more than ${max} values`);
  };
}

function hasFewFields(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  try {
    return countFields(new BinaryReader(bytes), bytes.length, desc, max) <= max;
  } catch {
    return true;
  }
}

/** Returns how many fields there are up to `end`, or more than `max`. */
function countFields(reader: BinaryReader, end: number, { fields }: Shape, max: number): number {
  let total = 0;
  while (reader.pos < end && total <= max) {
    const [number, wireType] = reader.tag();
    const isMessage = wireType === WireType.LengthDelimited;
    const inner = isMessage ? shapeOf(fields.find((field) => field.number === number)) : undefined;
    total++;
    if (inner === undefined) reader.skip(wireType, number);
    else {
      const length = reader.uint32();
      total += countFields(reader, reader.pos + length, inner, max - total);
    }
  }
  return total;
}

interface Shape {
  readonly fields: readonly Pick<DescField, "number" | "fieldKind" | "message">[];
}

/** The message that a field holds. An entry of a map is one itself, of number 2 its value; one of scalars counts as one field, as in JSON. */
function shapeOf(field: Shape["fields"][number] | undefined): Shape | undefined {
  if (field?.fieldKind !== "map" || field.message === undefined) return field?.message;
  return { fields: [{ number: 2, fieldKind: "message", message: field.message }] };
}
