import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** What one run has recorded: the number of warnings and expiries. */
export interface RecordedExpiry {
  readonly expiring: number;
  readonly expired: number;
  /** Milliseconds since which the next key is due; 0 if none is. */
  readonly lag: number;
}

/** Keys of one run for each threshold: their rows are locked meanwhile. */
const MAX_KEYS = 500;

/**
 * Records that keys expire soon or have expired, each once on all nodes (migration 0029). `warnings` are times before the expiry, in
 * milliseconds.
 */
export function recordExpiry(database: Database, warnings: readonly number[]): Promise<RecordedExpiry> {
  const intervals = warnings.map((warning) => `${warning} ms`);
  return database.run(
    async (sql) =>
      firstRow(
        await sql<RecordedExpiry[]>`
          SELECT expiring, expired, lag FROM audit_expiry(${intervals}::text[]::interval[], ${MAX_KEYS}) WHERE ${ownSession(sql)}`,
      ),
    "audit.expiry",
  );
}
