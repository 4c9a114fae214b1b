import type { Fragment, SerializableParameter, Sql } from "postgres";
import type { ServerId } from "../../cluster/server-id.ts";
import type { Tag } from "./fragments.ts";
import { ownSession } from "./session-settings.ts";

/**
 * Returns an expression for the identity of the server that runs a statement (`ServerId`). `pg_current_wal_lsn` fails on a standby
 * (SQLSTATE 55000), so a statement that contains this is never answered by one. The timeline of `pg_control_checkpoint` would lag behind
 * a promotion.
 * It also requires `ownSession`.
 */
export function serverId<F>(sql: Tag<F>): F {
  return sql`(CASE WHEN ${ownSession(sql)} THEN
    ${systemIdentifier(sql)} || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' ||
    extract(epoch FROM pg_postmaster_start_time()) END)`;
}

/** Returns an expression for the system identifier of the server, a bigint. */
export function systemIdentifier<F>(sql: Tag<F>): F {
  return sql`(SELECT system_identifier FROM pg_control_system())`;
}

/** Returns an expression for the timeline of the server, an integer. */
export function timeline(sql: Sql): Fragment {
  return sql`('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer`;
}

/**
 * Wraps a statement that changes and returns rows (`INSERT`, `UPDATE` or `DELETE … RETURNING`) so that each row also contains the server
 * that ran it; if nothing was changed, the result is one row with the server alone. A separate statement might run on another server
 * behind a pooler. `before` is a query that the statement reads, written as in `WITH` and followed by a comma. `call` is who makes the change
 * (`call-context.ts`), which the triggers of the audit log read at the end of the statement; null: the call of the connection.
 *
 * A statement that changes nothing writes a message, so that its commit waits for the synchronous standbys too: it may have found an
 * earlier change that they do not have.
 */
export function withServer<F extends string | Fragment>(
  sql: Tag<F>,
  change: NoInfer<F>,
  before: NoInfer<F> = sql``,
  call: SerializableParameter = null,
): F {
  return sql`
    WITH ${before} changed AS (${change})
    SELECT ${serverId(sql)} AS server, changed.*,
      CASE WHEN pg_current_xact_id_if_assigned() IS NULL THEN pg_logical_emit_message(true, 'keyhold', 'unchanged') END AS written
    FROM ${setCall(sql, call)} AS one LEFT JOIN changed ON true`;
}

/** Returns a query of one row that sets the call of a statement, as an item of FROM. */
export function setCall<F>(sql: Tag<F>, call: SerializableParameter): F {
  return call === null ? sql`(VALUES (1))` : sql`(SELECT set_config('keyhold.call', ${call}, true))`;
}

/** A row of `withServer`. The other columns are null if nothing was changed. */
export type WithServer<R> = { readonly server: ServerId } & R;

/** Returns the columns of a `DatabasePosition`. */
export function positionColumns(sql: Sql): Fragment {
  return sql`${serverId(sql)} AS server, ${lsn(sql, sql`pg_current_wal_flush_lsn()`)} AS lsn,
    extract(epoch FROM clock_timestamp()) * 1000 AS time`;
}

/** Returns the number of a `pg_lsn` (PostgreSQL docs, 8.20). */
export function lsn(sql: Sql, position: Fragment): Fragment {
  return sql`(${position} - '0/0'::pg_lsn)::bigint`;
}
