import type { Fragment, Sql } from "postgres";

/** Bytes as hexadecimal text, the form in which lists of them go to the database. */
export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}

/** A `bytea[]` from hexadecimal texts. Evaluated once, before the rows, so that `= ANY` of it can use an index. */
export function byteArray(sql: Sql, hexadecimal: readonly string[]): Fragment {
  return sql`(ARRAY (SELECT decode(text, 'hex') FROM unnest(${[...hexadecimal]}::text[]) AS text))`;
}
