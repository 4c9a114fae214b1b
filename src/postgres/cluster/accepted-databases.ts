import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { systemIdentifier, timeline } from "../connection/server-position.ts";

/** A database that an operator accepted although it lacks changes. */
export interface AcceptedDatabase {
  readonly systemIdentifier: string;
  readonly timeline: number;
  /** Position of its write-ahead log at that time, in PostgreSQL's notation. */
  readonly lsn: string;
}

/**
 * Records that the database is accepted whatever it has lost (`cluster/history.ts`), so that servers that rejected it join it. Later losses
 * have to be accepted again.
 */
export async function acceptDatabase(database: Database): Promise<AcceptedDatabase> {
  const rows = await database.run(
    (sql) => sql<AcceptedDatabase[]>`
      INSERT INTO accepted_databases (system_identifier, timeline) VALUES (${systemIdentifier(sql)}, ${timeline(sql)})
      RETURNING system_identifier::text, timeline, pg_current_wal_lsn()::text AS lsn`,
    "databases.accept",
  );
  return firstRow(rows);
}
