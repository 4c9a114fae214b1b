import type { Fragment, Sql } from "postgres";
import type { Insertion, NewKey } from "../../keys/ports.ts";
import type { RanOn } from "../cluster/change-committer.ts";
import { callContext, callsContext } from "../connection/call-context.ts";
import { isForeignKeyViolation, wasRolledBack } from "../connection/errors.ts";
import { type WithServer, withServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { findConflicts } from "./conflicts.ts";
import { copyRows } from "./copy-rows.ts";
import { NEW_ROW_COLUMNS, NEW_ROW_DEFINITION, type NewRow, toNewRows } from "./insert-rows.ts";

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
  const found = new Map<NewKey, Insertion>();
  for (let attempt = 0; attempt < ATTEMPTS && found.size < keys.length; attempt++) {
    const settled = await insertPending(sql, pendingOf(keys, found), ranOn);
    for (const [key, insertion] of settled) found.set(key, insertion);
    if (settled.size > 0) attempt = -1;
  }
  // A conflict that could never be read may concern a single key: the others are stored without it.
  const rest = pendingOf(keys, found);
  for (const key of rest.length > 1 ? rest : []) {
    const [insertion = RAW_KEY_EXISTS] = await insertKeys(sql, [key], ranOn);
    found.set(key, insertion);
  }
  return keys.map((key) => found.get(key) ?? RAW_KEY_EXISTS);
}

const RAW_KEY_EXISTS: Insertion = { outcome: "raw_key_exists" };

function pendingOf(keys: readonly NewKey[], found: ReadonlyMap<NewKey, Insertion>): NewKey[] {
  return keys.filter((key) => !found.has(key));
}

/** Returns the known outcomes: inserted, or the conflict. */
async function insertPending(sql: Sql, keys: readonly NewKey[], ranOn: RanOn): Promise<Map<NewKey, Insertion>> {
  const stored = await storeRows(sql, keys, ranOn);
  if (stored === null) return findGone(sql, keys);
  const isStored = ({ key }: NewKey) => stored.has(key.keyId);
  const outcomes = await findConflicts(
    sql,
    keys.filter((one) => !isStored(one)),
  );
  for (const one of keys) if (isStored(one)) outcomes.set(one, { outcome: "inserted", key: one.key });
  return outcomes;
}

/** Returns the ids of the stored keys: none if the statement has to be retried, null if a hash scheme of a key is gone. */
async function storeRows(sql: Sql, keys: readonly NewKey[], ranOn: RanOn): Promise<Set<string> | null> {
  const rows = toNewRows(keys);
  const call = callOf(keys);
  try {
    if (rows.length >= COPY_ROWS && (await copyRows(sql, rows, call, ranOn)))
      return new Set(keys.map(({ key }) => key.keyId));
    return await insertRows(sql, rows, call, ranOn);
  } catch (error) {
    // Batches with the same requests are ordered by raw key and may deadlock.
    if (wasRolledBack(error) || isRawKeyConflict(error)) return new Set();
    if (isForeignKeyViolation(error)) return null;
    throw error;
  }
}

/** Returns the call that creates the keys, or that of each key if several calls share the statement. */
function callOf(keys: readonly NewKey[]): string {
  const [first] = keys;
  if (first !== undefined && keys.every(({ principal }) => principal === first.principal))
    return callContext(first.principal);
  return callsContext(new Map(keys.map(({ key, principal }) => [key.keyId, principal])));
}

/**
 * Returns the ids of the stored keys. A duplicate within the statement conflicts with the first like any other. The statement fails as a
 * whole if a raw key exists under a digest that is not the first of both keys: the trigger of migration 0006 inserts that one, and
 * `ON CONFLICT` does not cover it.
 */
async function insertRows(sql: Sql, rows: readonly NewRow[], call: string, ranOn: RanOn): Promise<Set<string>> {
  const columns = sql(NEW_ROW_COLUMNS);
  const insertion = sql`
    INSERT INTO api_keys (${columns})
    SELECT ${columns} FROM json_to_recordset(${JSON.stringify(rows)}::text::json) AS row (${sql.unsafe(NEW_ROW_DEFINITION)})
    ON CONFLICT DO NOTHING
    RETURNING key_id`;
  const stored = await sql<
    WithServer<{ keyId: string | null }>[]
  >`${withServer<Fragment>(sql, insertion, sql``, call)}`;
  for (const { server } of stored.slice(0, 1)) ranOn(server);
  return new Set(stored.flatMap(({ keyId }) => keyId ?? []));
}

/** Returns the keys whose hash scheme or prefix length is not stored: a job removes those that no key has. */
async function findGone(sql: Sql, keys: readonly NewKey[]): Promise<Map<NewKey, Insertion>> {
  const schemes = await sql<{ schemeId: number }[]>`SELECT scheme_id FROM hash_schemes WHERE ${ownSession(sql)}`;
  const lengths = await sql<{ length: number }[]>`SELECT length FROM hash_prefix_lengths WHERE ${ownSession(sql)}`;
  const isGone = ({ hash }: NewKey) =>
    hash !== undefined &&
    !(
      schemes.some(({ schemeId }) => schemeId === hash.schemeId) &&
      (hash.lookup === null || lengths.some(({ length }) => length === hash.lookup?.length))
    );
  return new Map(keys.filter(isGone).map((key) => [key, { outcome: "hash_scheme_gone" }]));
}

function isRawKeyConflict(error: unknown): boolean {
  return error instanceof Error && "constraint_name" in error && error.constraint_name === "raw_key_digests_pkey";
}
