import type { Fragment, Sql } from "postgres";
import type { DatabasePosition, ServerId } from "../cluster/server-id.ts";

/**
 * The identity of the server that runs a statement, as `ServerId` has it. `pg_current_wal_lsn` is an error on a standby (SQLSTATE 55000), so
 * that nothing which carries this is answered by one. The timeline of `pg_control_checkpoint` would lag behind a promotion.
 */
export function serverId(sql: Sql): Fragment {
  return sql`(
    ${systemIdentifier(sql)} || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
    extract(epoch FROM pg_postmaster_start_time()))`;
}

/** The system identifier of the server that runs a statement, a bigint. */
export function systemIdentifier(sql: Sql): Fragment {
  return sql`(SELECT system_identifier FROM pg_control_system())`;
}

/** The timeline of the server that runs a statement, an integer. */
export function timeline(sql: Sql): Fragment {
  return sql`('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer`;
}

/**
 * Runs a statement that changes rows and returns them (`INSERT`, `UPDATE` or `DELETE … RETURNING`), and returns the server that ran it with each; where
 * it changed none, one row with nothing else but the server. A pooler may run the next statement on another server. `before` is a query that the change
 * reads, as in `WITH`, with a comma behind it.
 */
export function withServer(sql: Sql, change: Fragment, before: Fragment = sql``): Fragment {
  return sql`
    WITH ${before} changed AS (${change})
    SELECT ${serverId(sql)} AS server, changed.* FROM (VALUES (1)) AS one LEFT JOIN changed ON true`;
}

/** A row of `withServer`: all its other columns are null where nothing was changed. */
export type WithServer<R> = { readonly server: ServerId } & R;

/** The columns of a `PositionRow`. */
export function positionColumns(sql: Sql): Fragment {
  return sql`${serverId(sql)} AS server, pg_current_wal_flush_lsn()::text AS lsn,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;
}

export interface PositionRow {
  readonly server: string;
  readonly lsn: string;
  readonly time: number;
}

export function toPosition({ server, lsn, time }: PositionRow): DatabasePosition {
  return { server, lsn: parseLsn(lsn), time };
}

/** Reads a `pg_lsn`: two halves in hexadecimal (PostgreSQL docs, 8.20). */
export function parseLsn(text: string): bigint {
  const [high = "0", low = "0"] = text.split("/");
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}
