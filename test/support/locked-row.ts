import type { ISql, Sql } from "postgres";

export interface LockedRow {
  release(): Promise<void>;
  /** Deletes the key before the release. */
  releaseDeleted(): Promise<void>;
}

/** Locks the row of a key, so that changes of it wait. Resolves when it is locked. `sql` needs two connections. */
export async function lockRow(sql: Sql, keyId: string): Promise<LockedRow> {
  const held = Promise.withResolvers<void>();
  const over = Promise.withResolvers<"kept" | "deleted">();
  const transaction = sql.begin(async (tx) => {
    await tx`SELECT FROM api_keys WHERE key_id = ${keyId} FOR UPDATE`;
    held.resolve();
    if ((await over.promise) === "deleted") await tx`DELETE FROM api_keys WHERE key_id = ${keyId}`;
  });
  const end = async (how: "kept" | "deleted") => {
    over.resolve(how);
    await transaction;
  };
  await Promise.race([held.promise, transaction]);
  return { release: () => end("kept"), releaseDeleted: () => end("deleted") };
}

/** Locks a table, so that each statement on it waits. Returns the release. `sql` needs two connections. */
export async function lockTable(sql: Sql, table: string): Promise<() => Promise<void>> {
  const locked = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const transaction = sql.begin(async (tx) => {
    await tx`LOCK TABLE ${tx(table)} IN ACCESS EXCLUSIVE MODE`;
    locked.resolve();
    await over.promise;
  });
  await Promise.race([locked.promise, transaction]);
  return async () => {
    over.resolve();
    await transaction;
  };
}

/** Returns whether a statement of a call waits in this database for a lock. */
export async function isAwaited(sql: ISql): Promise<boolean> {
  return (await countWaiting(sql)) > 0;
}

/** Returns how many statements wait in this database for a lock. Those of a server's jobs, which may wait too, are not counted. */
export async function countWaiting(sql: ISql): Promise<number> {
  const [row] = await sql`
    SELECT count(*)::int AS waiting FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE NOT granted AND datname = current_database() AND application_name <> 'keyhold audit'`;
  return row?.waiting;
}
