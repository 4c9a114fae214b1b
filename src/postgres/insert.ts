import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../keys/store.ts";
import { findConflicts, findKnown, type Pending } from "./conflicts.ts";
import { copyRows } from "./copy-rows.ts";
import { NEW_ROW_COLUMNS, NEW_ROW_DEFINITION, type NewRow, toNewRows } from "./new-rows.ts";

/** A key that was deleted between our conflict with it and our look at it frees its place: how often to try again. */
const ATTEMPTS = 3;

/**
 * From so many rows on COPY is tried first: an INSERT of 1000 rows costs the database 1.5 times as much (45 ms of its time
 * against 30; as much from JSON as from arrays, and more with a parameter for each value), one by COPY through a table
 * between 1.2 times. It is all or none, so that a row that is known costs twice the rows before it.
 */
export const COPY_ROWS = 100;

/**
 * Stores keys in one statement and one commit. A key whose raw key or request is known already conflicts and is not stored;
 * what it conflicts with is read afterwards, since it may have been committed by another server meanwhile.
 */
export async function insertKeys(sql: Sql, keys: readonly NewKey[]): Promise<Insertion[]> {
  const found = await findKnown(sql, keys);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const pending = keys.flatMap((key, index) => (found.has(index) ? [] : [{ key, index }]));
    if (pending.length === 0) break;
    for (const [index, insertion] of await insertPending(sql, pending)) found.set(index, insertion);
  }
  return keys.map((_, index) => found.get(index) ?? { outcome: "raw_key_exists" });
}

/** By place, what became of the keys of which that is known: stored, or what each conflicted with. */
async function insertPending(sql: Sql, pending: readonly Pending[]): Promise<Map<number, Insertion>> {
  const stored = await storeRows(
    sql,
    pending.map(({ key }) => key),
  );
  const isStored = ({ key }: Pending) => stored.has(key.key.keyId);
  const conflicts = await findConflicts(
    sql,
    pending.filter((one) => !isStored(one)),
  );
  for (const one of pending) if (isStored(one)) conflicts.set(one.index, { outcome: "inserted", key: one.key.key });
  return conflicts;
}

/** Identifiers of the keys that were stored. */
async function storeRows(sql: Sql, keys: readonly NewKey[]): Promise<Set<string>> {
  const rows = toNewRows(keys);
  if (rows.length >= COPY_ROWS && (await copyRows(sql, rows))) return new Set(keys.map(({ key }) => key.keyId));
  return insertRows(sql, rows);
}

/** Identifiers of the keys that were stored. A duplicate within the statement conflicts with the first like any other. */
async function insertRows(sql: Sql, rows: readonly NewRow[]): Promise<Set<string>> {
  const columns = sql(NEW_ROW_COLUMNS);
  const stored = await sql<{ key_id: string }[]>`
    INSERT INTO api_keys (${columns})
    SELECT ${columns} FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${sql.unsafe(NEW_ROW_DEFINITION)})
    ON CONFLICT DO NOTHING
    RETURNING key_id`;
  return new Set(stored.map((row) => row.key_id));
}
