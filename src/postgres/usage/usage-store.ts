import type { UsageStore } from "../../usage/flush.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Rows of a day that are copied in one transaction, in about a second. */
const MAX_COPIED = 50_000;

/** Creates the store of usage in PostgreSQL (migration 0033). */
export function createUsageStore(database: Database): UsageStore {
  return {
    flush: async ({ processId, id, rows }) => {
      const keyIds = rows.map(({ keyId }) => keyId);
      const outcomes = rows.map(({ outcome }) => outcome);
      const counts = rows.map(({ count }) => String(count));
      await database.run(
        (sql) => sql`
          SELECT usage_flush(${processId}::uuid, ${id}::bigint, ${keyIds}::uuid[], ${outcomes}::text[], ${counts}::text[]::bigint[])
          WHERE ${ownSession(sql)}`,
        "usage.flush",
      );
    },
    maintain: async (retention) => {
      const rows = await database.run(
        (sql) => sql<{ more: boolean }[]>`
          SELECT usage_maintain(${`${retention} ms`}::text::interval, ${MAX_COPIED}) AS more WHERE ${ownSession(sql)}`,
        "usage.maintain",
      );
      return firstRow(rows).more;
    },
  };
}
