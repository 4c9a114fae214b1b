import type { Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Sql } from "postgres";
import type { ServerId } from "../cluster/server-id.ts";
import { NEW_ROW_COLUMNS, type NewRow, toCopyText } from "./insert-rows.ts";
import type { RanOn } from "./propagate.ts";
import { serverId } from "./server-position.ts";

/** SQLSTATE of a row that exists (PostgreSQL, appendix A). */
const UNIQUE_VIOLATION = "23505";

/** The database takes up a part while the next one is made: of 1000 rows this saves a tenth of the time. */
const PART_ROWS = 100;

/**
 * Stores rows by COPY, all or none, and answers whether they are stored. They are not if one conflicts with a row that is
 * there, or if the database refused them for another reason, which an INSERT of the same rows then tells. None of their
 * identifiers may have been sent before: any of them that is there says that all are (one may have been deleted already).
 *
 * After the end of the stream the driver tells neither of an error of the database nor of a lost connection (postgres 3.4.9).
 * A query that is sent behind it is answered after the COPY, or fails with the connection. A transaction would say the same,
 * but a connection lost within `sql.begin` ends the process: the driver writes its ROLLBACK to a socket that is gone.
 */
export async function copyRows(sql: Sql, rows: readonly NewRow[], ranOn: RanOn): Promise<boolean> {
  const stream = await sql`COPY api_keys (${sql(NEW_ROW_COLUMNS)}) FROM STDIN`.writable();
  await write(stream, rows);
  if (stream.errored !== null) return refused(stream.errored);
  stream.end();
  const ids = rows.map((row) => row.key_id);
  const [stored] = await sql<{ server: ServerId }[]>`
    SELECT ${serverId(sql)} AS server FROM api_keys WHERE key_id = ANY (${ids}::uuid[]) LIMIT 1`;
  if (stored !== undefined) ranOn(stored.server);
  return stored !== undefined;
}

/** Resolves when all is sent, or the stream has failed. */
async function write(stream: Writable, rows: readonly NewRow[]): Promise<void> {
  const failed = new Promise<void>((resolve) => stream.once("error", () => resolve()));
  for (let start = 0; start < rows.length && stream.errored === null; start += PART_ROWS) {
    const part = toCopyText(rows.slice(start, start + PART_ROWS));
    await Promise.race([failed, new Promise<void>((resolve) => stream.write(part, () => resolve()))]);
    // What the kernel takes at once is written at once: without a turn between them, all parts would be one piece of work.
    await nextTurn();
  }
}

function refused(error: Error): false {
  if ("code" in error && error.code === UNIQUE_VIOLATION) return false;
  throw error;
}
