import type { Sql } from "postgres";
import type { Insertion, NewKey } from "../keys/store.ts";
import { findConflicts, findKnown, type Pending } from "./conflicts.ts";
import { copyRows } from "./copy-rows.ts";
import { wasRolledBack } from "./errors.ts";
import { NEW_ROW_COLUMNS, NEW_ROW_DEFINITION, type NewRow, toNewRows } from "./insert-rows.ts";
import type { RanOn } from "./propagate.ts";
import { type WithServer, withServer } from "./server-position.ts";

/** Maximum number of consecutive attempts without progress. An attempt makes none if the conflicting key was deleted before it was read. */
const ATTEMPTS = 3;

/**
 * Number of rows from which COPY is tried first. An INSERT of 1,000 rows takes the database 1.5 times as long (45 ms against 30 ms; the
 * same from JSON and from arrays, longer with a parameter per value), COPY through a staging table 1.2 times. COPY stores all or none,
 * so a row that exists costs the rows before it twice.
 */
export const COPY_ROWS = 100;

/**
 * Stores keys with one statement and one commit. A key whose raw key or request exists conflicts and is not stored; the conflicting key
 * is read afterwards, because another server may have committed it concurrently.
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

/** A conflict that could never be read may concern a single key: the others are stored without it. */
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

/** Returns the known outcomes by index: inserted, or the conflict. */
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

/** Returns the ids of the stored keys; none if the statement has to be retried. */
async function storeRows(sql: Sql, keys: readonly NewKey[], ranOn: RanOn): Promise<Set<string>> {
  const rows = toNewRows(keys);
  try {
    if (rows.length >= COPY_ROWS && (await copyRows(sql, rows, ranOn)))
      return new Set(keys.map(({ key }) => key.keyId));
    return await insertRows(sql, rows, ranOn);
  } catch (error) {
    // Batches with the same requests are ordered by raw key and may deadlock.
    if (wasRolledBack(error) || isRawKeyConflict(error)) return new Set();
    throw error;
  }
}

/**
 * Returns the ids of the stored keys. A duplicate within the statement conflicts with the first like any other. The statement fails as a
 * whole if a raw key exists under a digest that is not the first of both keys: the trigger of migration 0006 inserts that one, and
 * `ON CONFLICT` does not cover it.
 */
async function insertRows(sql: Sql, rows: readonly NewRow[], ranOn: RanOn): Promise<Set<string>> {
  const columns = sql(NEW_ROW_COLUMNS);
  const insertion = sql`
    INSERT INTO api_keys (${columns})
    SELECT ${columns} FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${sql.unsafe(NEW_ROW_DEFINITION)})
    ON CONFLICT DO NOTHING
    RETURNING key_id`;
  const stored = await sql<WithServer<{ keyId: string | null }>[]>`${withServer(sql, insertion)}`;
  for (const { server } of stored.slice(0, 1)) ranOn(server);
  return new Set(stored.flatMap(({ keyId }) => keyId ?? []));
}

function isRawKeyConflict(error: unknown): boolean {
  return error instanceof Error && "constraint_name" in error && error.constraint_name === "raw_key_digests_pkey";
}
