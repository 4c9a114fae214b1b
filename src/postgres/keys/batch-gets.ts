import type { Sql } from "postgres";
import type { StoredKey } from "../../domain/key.ts";
import type { KeyName } from "../../keys/ports.ts";
import { Batcher } from "../../lib/batcher.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { type KeyRow, type SecretsRow, STORED_KEY_COLUMNS, toStoredKey } from "./rows.ts";

/** With two, a late caller need not wait for the statement in flight. */
const MAX_IN_FLIGHT = 2;

/** Bounds the size of a result. */
const MAX_KEYS = 100;

/**
 * Reads keys by name, each with a statement that is sent after the call. Concurrent reads are batched, because each use of a connection
 * costs a tick of the event loop.
 */
export function batchGets(database: Database): (name: KeyName) => Promise<StoredKey | null> {
  const getMany = (names: readonly KeyName[]) => database.run((sql) => getKeys(sql, names), "keys.get");
  const gets = new Batcher(getMany, { maxInFlight: MAX_IN_FLIGHT, maxItems: MAX_KEYS, concernsAll: () => true });
  return (name) => gets.do(name);
}

async function getKeys(sql: Sql, names: readonly KeyName[]): Promise<(StoredKey | null)[]> {
  const rows = await sql<(KeyRow & SecretsRow)[]>`
    SELECT ${sql(STORED_KEY_COLUMNS)} FROM api_keys WHERE key_id = ANY (${names.map(({ keyId }) => keyId)}::uuid[]) AND (SELECT ${ownSession(sql)})`;
  const byId = new Map(rows.map((row) => [row.keyId, row]));
  return names.map(({ keyId, kind }) => {
    const row = byId.get(keyId);
    return row === undefined || (kind !== null && row.kind !== kind) ? null : toStoredKey(row);
  });
}
