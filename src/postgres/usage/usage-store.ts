import type { ServerId, ServerObserver } from "../../cluster/server-id.ts";
import type { UsageStore } from "../../usage/flush.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { serverId } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";

/** Rows of a day that are packed in one transaction, in about a second. */
const MAX_PACKED = 20_000;

/**
 * Creates the store of usage in PostgreSQL (migrations 0033 and 0036). A flush fails if another server than that of the feed has stored it:
 * the others may never have it.
 */
export function createUsageStore(database: Database, feed: ServerObserver): UsageStore {
  return {
    flush: async ({ processId, id, rows }) => {
      const expected = feed.server;
      const keyIds = rows.map(({ keyId }) => keyId);
      const outcomes = rows.map(({ outcome }) => outcome);
      const counts = rows.map(({ count }) => String(count));
      const stored = await database.run(
        (sql) => sql<{ server: ServerId }[]>`
          SELECT ${serverId(sql)} AS server,
            usage_flush(${processId}::uuid, ${id}::bigint, ${keyIds}::uuid[], ${outcomes}::text[], ${counts}::text[]::bigint[])
          WHERE ${ownSession(sql)}`,
        "usage.flush",
      );
      feed.requireServer(firstRow(stored).server, expected);
    },
    maintain: async (retention) => {
      const rows = await database.run(
        (sql) => sql<{ more: boolean }[]>`
          SELECT usage_maintain(${`${retention} ms`}::text::interval, ${MAX_PACKED}) AS more WHERE ${ownSession(sql)}`,
        "usage.maintain",
      );
      return firstRow(rows).more;
    },
  };
}
