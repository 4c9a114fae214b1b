import { setImmediate as nextTick } from "node:timers/promises";
import { type DescField, type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { invalidArgument } from "../../domain/errors.ts";
import { BODY, type ValueLimits } from "./json/parse.ts";

/** Reads a message from its binary form. Throws like `decodeBinary`. */
export function readBinaryMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  limits: ValueLimits,
): MessageShape<D> {
  return decodeBinary(desc, bytes, limits, () => fromBinary(desc, bytes));
}

/**
 * Decodes the binary form of a message. Throws `INVALID_ARGUMENT` if it is malformed, or has more fields than JSON may have values: an
 * empty item takes two bytes and three microseconds, so 4 MiB of them would block the server for six seconds.
 */
export function decodeBinary<T>(
  desc: DescMessage,
  bytes: Uint8Array,
  { values: max }: ValueLimits,
  decode: (bytes: Uint8Array) => T,
): T {
  if (bytes.length > max * MIN_FIELD_BYTES && !hasFewFields(desc, bytes, max)) {
    throw invalidArgument(BODY, `has more than ${max} values`, "TOO_MANY_ITEMS");
  }
  try {
    return decode(bytes);
  } catch {
    // The library's error quotes what the caller sent, which may be a secret.
    throw malformed();
  }
}

/** Returns the error for a body that is no message of the RPC. */
export function malformed(): Error {
  return invalidArgument(BODY, "is not a well-formed request for this RPC");
}

/** The minimum size of a field: its tag, and a value or length. */
const MIN_FIELD_BYTES = 2;

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

/** Number of list items from which a message is processed in several ticks of the event loop: a thousand keys may take 12 MB. */
export const LONG_LIST = 100;

/** Resolves in the next tick of the event loop if the message has a long list, so that other calls are served in between. */
export async function yieldIfLong(message: object): Promise<void> {
  const isLong = Object.values(message).some((value) => Array.isArray(value) && value.length >= LONG_LIST);
  if (isLong) await nextTick();
}
