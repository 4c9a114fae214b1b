import type { Sql } from "postgres";
import type { BarrierAnswer, LeaseRow, Mark, RenewalAnswer, RenewLease } from "../cluster/change-feed.ts";
import { barrierText, CHANGES_CHANNEL, echoText, sessionChannel } from "./change-feed-events.ts";
import { databaseError } from "./errors.ts";
import { firstRow } from "./first-row.ts";
import { openPrimary } from "./primary.ts";
import { isReplicationCancelled } from "./replication-notice.ts";
import { type PositionRow, positionColumns, toPosition } from "./server-position.ts";

/** A lease as a statement reads it. */
export interface NodeLeaseRow {
  readonly lease_id: string;
  readonly ttl_ms: number;
  /** The driver's form of a bigint. */
  readonly renewals: string;
}

export function toLeases(rows: readonly NodeLeaseRow[]): LeaseRow[] {
  return rows.map(({ lease_id, ttl_ms, renewals }) => ({
    leaseId: lease_id,
    ttl: ttl_ms,
    renewals: Number(renewals),
  }));
}

/** After this the database cancels a renewal, in milliseconds. */
const RENEWAL_TIMEOUT = 5_000;

/** Seconds for a connection to close. */
const CLOSE_TIMEOUT = 1;

/**
 * Renews leases, each over a new connection to this URL. One that stays open would go on to lead to a primary that new connections, of other
 * nodes too, do not reach any more.
 */
export function createRenewLease(url: string): RenewLease {
  return async ({ leaseId, number, feedLag }, signal) => {
    signal.throwIfAborted();
    let isReplicated = true;
    const opening = openPrimary(
      {
        url,
        maxConnections: 1,
        statementTimeout: RENEWAL_TIMEOUT,
        prepare: false,
        applicationName: "keyhold lease",
        onNotice: (notice) => {
          if (isReplicationCancelled(notice)) isReplicated = false;
        },
      },
      { failsOnStandby: true },
    );
    const giveUp = () => void opening.end({ timeout: 0 });
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      const sql = await opening.ready;
      const rows = await sql<RenewalRow[]>`
        WITH renewed AS (
          UPDATE nodes SET renewals = renewals + 1, renew_time = clock_timestamp(), feed_lag_ms = ${feedLag}
          WHERE lease_id = ${leaseId}
          RETURNING lease_id
        ), echo AS (
          SELECT lease_id, pg_notify(${sessionChannel(leaseId)}, ${echoText(number)}) FROM renewed
        )
        SELECT ${positionColumns(sql)}, nodes.lease_id, ttl_ms, renewals, EXISTS (SELECT FROM echo) AS is_held
        FROM (VALUES (1)) AS one LEFT JOIN nodes ON true`;
      return { ...toRenewalAnswer(rows), isReplicated };
    } catch (error) {
      throw databaseError(error);
    } finally {
      signal.removeEventListener("abort", giveUp);
      void opening.end({ timeout: CLOSE_TIMEOUT });
    }
  };
}

interface RenewalRow extends PositionRow, NodeLeaseRow {
  readonly is_held: boolean;
}

/**
 * Sends a barrier, which asks all other nodes to acknowledge every change committed before it, and returns their leases. PostgreSQL
 * sends equal notifications of a transaction once, however many rows select them. Sends nothing without a mark or without other
 * nodes. A barrier that `isDurable` commits like a change, after the synchronous standbys have everything before it.
 */
export async function sendBarrier(sql: Sql, mark: Mark | null, isDurable: boolean): Promise<BarrierAnswer> {
  const { from, number } = mark ?? { from: null, number: 0 };
  const rows = await sql<BarrierRow[]>`
    SELECT ${positionColumns(sql)}, ${isSynchronous(sql)} AS is_synchronous, lease_id, ttl_ms, renewals,
      ${isDurable ? sql`pg_logical_emit_message(true, 'keyhold', 'barrier'),` : sql``}
      CASE WHEN lease_id IS NOT NULL THEN pg_notify(${CHANGES_CHANNEL}, ${barrierText(from ?? "", number)}) END
    FROM (VALUES (1)) AS one LEFT JOIN nodes ON lease_id <> ${from}`;
  const first = firstRow(rows);
  const position = toPosition(first);
  // What is flushed here beside our own change need not be on a standby yet.
  const lsn = first.is_synchronous ? null : position.lsn;
  return { position: { ...position, lsn }, leases: toLeases(rows.filter(hasLease)) };
}

interface BarrierRow extends PositionRow, NodeLeaseRow {
  readonly is_synchronous: boolean;
}

/** Whether commits wait for a standby. */
function isSynchronous(sql: Sql) {
  return sql`(current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('local', 'off'))`;
}

function toRenewalAnswer(rows: readonly RenewalRow[]): Omit<RenewalAnswer, "isReplicated"> {
  const first = firstRow(rows);
  return { position: toPosition(first), isHeld: first.is_held, leases: toLeases(rows.filter(hasLease)) };
}

/** Where there is no lease, the join has one row without. */
function hasLease(row: NodeLeaseRow): boolean {
  return row.lease_id !== null;
}
