import type { Fragment, Sql } from "postgres";

/**
 * The array types that our statements use, by object identifier (PostgreSQL, src/include/catalog/pg_type.dat). By default the driver
 * queries them on every new connection, and if that query fails, its rejection is unhandled and ends the process
 * (porsager/postgres#1192).
 */
export const ARRAY_TYPES = { text_array: arrayType(1009), uuid_array: arrayType(2951) };

function arrayType(oid: number) {
  return { to: oid, from: [oid], serialize: writeArray, parse: readArray };
}

/** Returns the text form of a one-dimensional array without nulls (PostgreSQL docs, 8.15.6). */
export function writeArray(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, "\\$&")}"`).join(",")}}`;
}

const ITEM = /"((?:[^"\\]|\\.)*)"|[^{},]+/gs;

export function readArray(text: string): string[] {
  return [...text.matchAll(ITEM)].map(([bare, quoted]) => quoted?.replace(/\\(.)/gs, "$1") ?? bare);
}

/** Returns bytes as hexadecimal text, the form in which lists of bytes are sent to the database. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** Returns a `bytea[]` expression for hexadecimal texts. It is evaluated once, before the rows, so that `= ANY` can use an index. */
export function byteArray(sql: Sql, hexadecimal: readonly string[]): Fragment {
  return sql`(ARRAY (SELECT decode(text, 'hex') FROM unnest(${[...hexadecimal]}::text[]) AS text))`;
}
