import { firstRow } from "./first-row.ts";
import type { Database } from "./pool.ts";
import { systemIdentifier, timeline } from "./server-position.ts";

/** A database that was accepted as it is. */
export interface AcceptedDatabase {
  readonly systemIdentifier: string;
  readonly timeline: number;
  /** Where its write-ahead log was then, as PostgreSQL writes it. */
  readonly lsn: string;
}

/**
 * Writes that the database is accepted as it is, whatever it has lost (`cluster/history.ts`): servers that refuse it join it. It is of use
 * once: what is lost later has to be accepted again.
 */
export async function acceptDatabase(database: Database): Promise<AcceptedDatabase> {
  const rows = await database.run(
    (sql) => sql<AcceptedDatabase[]>`
      INSERT INTO accepted_databases (system_identifier, timeline) VALUES (${systemIdentifier(sql)}, ${timeline(sql)})
      RETURNING system_identifier::text AS "systemIdentifier", timeline, pg_current_wal_lsn()::text AS lsn`,
    "databases.accept",
  );
  return firstRow(rows);
}
