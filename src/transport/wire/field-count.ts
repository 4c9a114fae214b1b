import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { toConnectError } from "../../api/errors.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { BODY, valueLimits } from "./json/scan.ts";

/** The minimum size of a field: its tag, and a value or length. */
const MIN_FIELD_BYTES = 2;

/**
 * Returns a check that rejects a binary message with more fields than JSON may have values, before it is decoded: an empty item takes two
 * bytes and three microseconds, so 16 MiB of them would block the server for half a minute. Throws `INVALID_ARGUMENT`; malformed input is
 * left to the decoder.
 */
export function fieldBound(desc: DescMessage, maxRequestBytes: number): (bytes: Uint8Array) => void {
  const max = valueLimits(maxRequestBytes).values;
  return (bytes) => {
    if (bytes.length <= max * MIN_FIELD_BYTES || hasFewFields(desc, bytes, max)) return;
    throw toConnectError(invalidArgument(BODY, `has more than ${max} values`, "TOO_MANY_ITEMS"));
  };
}

function hasFewFields(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  try {
    return countFields(new BinaryReader(bytes), bytes.length, desc, max) <= max;
  } catch {
    return true;
  }
}

/** Returns the number of fields up to `end`, or a number above `max`. */
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

/**
 * The message type of a field. A map entry is a message whose field 2 is the value; an entry of scalars counts as one field, as in JSON.
 */
function shapeOf(field: Shape["fields"][number] | undefined): Shape | undefined {
  if (field?.fieldKind !== "map" || field.message === undefined) return field?.message;
  return { fields: [{ number: 2, fieldKind: "message", message: field.message }] };
}
