import type { Fragment, Sql } from "postgres";

/** Returns bytes as hexadecimal text, the form in which lists of bytes are sent to the database. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** Returns a `bytea[]` expression for hexadecimal texts. It is evaluated once, before the rows, so that `= ANY` can use an index. */
export function byteArray(sql: Sql, hexadecimal: readonly string[]): Fragment {
  return sql`(ARRAY (SELECT decode(text, 'hex') FROM unnest(${[...hexadecimal]}::text[]) AS text))`;
}
