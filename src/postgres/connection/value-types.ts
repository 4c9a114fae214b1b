import postgres from "postgres";
import { ARRAY_TYPES } from "./array-types.ts";
import { ForeignSettingError } from "./errors.ts";

/** Types of values by object identifier (PostgreSQL, src/include/catalog/pg_type.dat), read alike whatever the settings of the session are. */
export const VALUE_TYPES = {
  ...ARRAY_TYPES,
  bigint: postgres.BigInt,
  bytea: {
    to: 17,
    from: [17],
    serialize: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString("hex")}`,
    parse: parseBytes,
  },
  // Unlike that of float8, the text of a numeric does not depend on `extra_float_digits`.
  numeric: { to: 1700, from: [1700], serialize: String, parse: Number },
  date: { to: 1184, from: [1184], serialize: (time: Date) => new Date(time).toISOString(), parse: parseTime },
};

/** Reads a bytea in either format of `bytea_output` (PostgreSQL docs, 8.4): the text of the escape format never begins with `\x`. */
export function parseBytes(text: string): Buffer {
  if (text.startsWith("\\x")) return Buffer.from(text.slice(2), "hex");
  const unescaped = text.replace(/\\(\\|[0-7]{3})/g, (_, code) =>
    code === "\\" ? code : String.fromCharCode(Number.parseInt(code, 8)),
  );
  return Buffer.from(unescaped, "latin1");
}

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)([+-]\d\d)(?::(\d\d))?$/;

/**
 * Reads a timestamptz in the ISO format, also that of JSON, with the offset of any time zone.
 *
 * @throws ForeignSettingError for the other formats of `DateStyle`: some of them do not distinguish day and month.
 */
export function parseTime(text: string): Date {
  const [, day, time, hours, minutes = "00"] = TIME.exec(text) ?? [];
  const read = new Date(`${day}T${time}${hours}:${minutes}`);
  if (Number.isNaN(read.getTime()))
    throw new ForeignSettingError("the session writes times in a format other than ISO; check DateStyle");
  return read;
}
