import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../support/seeded.ts";
import type { Database } from "./database.ts";

/** Number of keys that are locked at a time. */
const ROWS = 10;

/** Maximum duration of a lock in milliseconds. */
const TIME = 60;

/** Repeatedly locks recently changed rows until the returned function is called, so that changes commit in another order. */
export function lockRows(database: Database, seeded: Seeded): () => Promise<void> {
  const over = new AbortController();
  const run = async () => {
    while (!over.signal.aborted) {
      await lockSome(database, seeded.below(TIME)).catch(() => sleep(100));
      await sleep(seeded.below(TIME));
    }
  };
  const running = run();
  return async () => {
    over.abort();
    await Promise.race([running, sleep(1_000)]);
  };
}

/** A single statement, because the driver exits the process if a transaction of several statements loses its connection. */
async function lockSome({ admin }: Database, milliseconds: number): Promise<void> {
  await admin`
    WITH locked AS MATERIALIZED (
      SELECT key_id FROM api_keys ORDER BY update_time DESC LIMIT ${ROWS} FOR UPDATE SKIP LOCKED
    )
    SELECT pg_sleep(${milliseconds / 1000}::float8) FROM (SELECT count(*) FROM locked) AS rows`;
}
