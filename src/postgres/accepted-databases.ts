import { type ServerId, systemIdentifierOf, timelineOf } from "../cluster/server-id.ts";
import type { Database } from "./pool.ts";
import { serverId } from "./server-position.ts";

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
  const [row] = await database.run(
    (sql) => sql<{ server: ServerId; lsn: string }[]>`
      WITH current AS (SELECT ${serverId(sql)} AS server, pg_current_wal_lsn()::text AS lsn), accepted AS (
        INSERT INTO accepted_databases (system_identifier, timeline)
        SELECT split_part(server, '/', 1)::bigint, ('x' || split_part(server, '/', 2))::bit(32)::integer FROM current
      )
      SELECT server, lsn FROM current`,
    "databases.accept",
  );
  if (row === undefined) throw new TypeError("one row was asked for");
  return { systemIdentifier: systemIdentifierOf(row.server), timeline: timelineOf(row.server), lsn: row.lsn };
}
