import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../keys/store.ts";
import { findConflicts, findKnown, type Pending } from "./conflicts.ts";
import { copyRows } from "./copy-rows.ts";
import { wasRolledBack } from "./errors.ts";
import { NEW_ROW_COLUMNS, NEW_ROW_DEFINITION, type NewRow, toNewRows } from "./insert-rows.ts";
import type { RanOn } from "./propagate.ts";
import { type WithServer, withServer } from "./server-position.ts";

/** How many attempts in a row may settle no key. A key that was deleted between our conflict with it and our look at it frees its place. */
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
export async function insertKeys(sql: Sql, keys: readonly NewKey[], ranOn: RanOn): Promise<Insertion[]> {
  const found = await findKnown(sql, keys);
  for (let attempt = 0; attempt < ATTEMPTS && found.size < keys.length; attempt++) {
    const pending = keys.flatMap((key, index) => (found.has(index) ? [] : [{ key, index }]));
    const settled = await insertPending(sql, pending, ranOn);
    for (const [index, insertion] of settled) found.set(index, insertion);
    if (settled.size > 0) attempt = -1;
  }
  return conclude(sql, keys, found, ranOn);
}

/** A conflict that was gone whenever it was looked for may be of one key alone: the others are stored without that one. */
async function conclude(
  sql: Sql,
  keys: readonly NewKey[],
  found: Map<number, Insertion>,
  ranOn: RanOn,
): Promise<Insertion[]> {
  const rest = keys.flatMap((key, index) => (found.has(index) ? [] : [{ key, index }]));
  for (const { key, index } of rest) {
    const [insertion] = rest.length > 1 ? await insertKeys(sql, [key], ranOn) : [];
    found.set(index, insertion ?? { outcome: "raw_key_exists" });
  }
  return keys.map((_, index) => found.get(index) ?? { outcome: "raw_key_exists" });
}

/** By place, what became of the keys of which that is known: stored, or what each conflicted with. */
async function insertPending(sql: Sql, pending: readonly Pending[], ranOn: RanOn): Promise<Map<number, Insertion>> {
  const stored = await storeRows(
    sql,
    pending.map(({ key }) => key),
    ranOn,
  );
  const isStored = ({ key }: Pending) => stored.has(key.key.keyId);
  const conflicts = await findConflicts(
    sql,
    pending.filter((one) => !isStored(one)),
  );
  for (const one of pending) if (isStored(one)) conflicts.set(one.index, { outcome: "inserted", key: one.key.key });
  return conflicts;
}

/** Identifiers of the keys that were stored: none of them if the statement is to be tried again. */
async function storeRows(sql: Sql, keys: readonly NewKey[], ranOn: RanOn): Promise<Set<string>> {
  const rows = toNewRows(keys);
  try {
    if (rows.length >= COPY_ROWS && (await copyRows(sql, rows, ranOn)))
      return new Set(keys.map(({ key }) => key.keyId));
    return await insertRows(sql, rows, ranOn);
  } catch (error) {
    // Batches with the same requests go in the order of their raw keys, and may deadlock.
    if (wasRolledBack(error) || isRawKeyConflict(error)) return new Set();
    throw error;
  }
}

/**
 * Identifiers of the keys that were stored. A duplicate within the statement conflicts with the first like any other. The statement
 * fails as a whole if a raw key is stored under a digest that is not the first of both keys: the trigger of migration 0006 inserts
 * it, and `ON CONFLICT` says nothing of that.
 */
async function insertRows(sql: Sql, rows: readonly NewRow[], ranOn: RanOn): Promise<Set<string>> {
  const columns = sql(NEW_ROW_COLUMNS);
  const insertion = sql`
    INSERT INTO api_keys (${columns})
    SELECT ${columns} FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${sql.unsafe(NEW_ROW_DEFINITION)})
    ON CONFLICT DO NOTHING
    RETURNING key_id`;
  const stored = await sql<WithServer<{ key_id: string | null }>[]>`${withServer(sql, insertion)}`;
  for (const { server } of stored.slice(0, 1)) ranOn(server);
  return new Set(stored.flatMap(({ key_id }) => key_id ?? []));
}

function isRawKeyConflict(error: unknown): boolean {
  return error instanceof Error && "constraint_name" in error && error.constraint_name === "raw_key_digests_pkey";
}
