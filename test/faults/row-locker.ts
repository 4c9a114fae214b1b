import { setTimeout as sleep } from "node:timers/promises";
import type { Seeded } from "../support/seeded.ts";
import type { Database } from "./database.ts";

/** Keys that are locked at once. */
const ROWS = 10;

/** Milliseconds that they are locked at the most. */
const TIME = 60;

/** Locks rows that were changed lately, for a moment each, until the answer is called: changes then commit in another order. */
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

/** One statement, for the driver ends the process when a transaction of more than one loses its connection. */
async function lockSome({ admin }: Database, milliseconds: number): Promise<void> {
  await admin`
    WITH locked AS MATERIALIZED (
      SELECT key_id FROM api_keys ORDER BY update_time DESC LIMIT ${ROWS} FOR UPDATE SKIP LOCKED
    )
    SELECT pg_sleep(${milliseconds / 1000}::float8) FROM (SELECT count(*) FROM locked) AS rows`;
}
