import type { Fragment, Sql } from "postgres";
import type { BarrierAnswer, LeaseRow, Mark, RenewLease } from "../../cluster/change-feed.ts";
import type { DatabasePosition } from "../../cluster/server-id.ts";
import { databaseError, isReplicationCancelled } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { openPrimary } from "../connection/primary.ts";
import { positionColumns } from "../connection/server-position.ts";
import { barrierText, CHANGES_CHANNEL, echoText, sessionChannel } from "./change-feed-events.ts";

/** Returns the columns of a `LeaseRow`. */
export function leaseColumns(sql: Sql): Fragment {
  return sql`lease_id, ttl_ms AS ttl, renewals::numeric AS renewals`;
}

/** A row of a left join with the leases. */
type JoinedLease = LeaseRow | { readonly leaseId: null };

/** After this the database cancels a renewal, in milliseconds. */
const RENEWAL_TIMEOUT = 5_000;

/** Seconds for a connection to close. */
const CLOSE_TIMEOUT = 1;

/**
 * Renews leases, each over a new connection to this URL. One that stays open would go on to lead to a primary that new connections, of other
 * nodes too, do not reach any more.
 */
export function createRenewLease(url: string): RenewLease {
  return async ({ leaseId, number, feedLag, clockAhead }, signal) => {
    signal.throwIfAborted();
    let isReplicated = true;
    const opening = openPrimary({
      url,
      statementTimeout: RENEWAL_TIMEOUT,
      prepare: false,
      applicationName: "keyhold lease",
      onNotice: (notice) => {
        if (isReplicationCancelled(notice)) isReplicated = false;
      },
    });
    const giveUp = () => void opening.end({ timeout: 0 });
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      const sql = await opening.ready;
      const rows = await sql<(DatabasePosition & JoinedLease & { readonly isHeld: boolean })[]>`
        WITH renewed AS (
          UPDATE nodes SET renewals = renewals + 1, renew_time = clock_timestamp(), feed_lag_ms = ${feedLag},
            clock_ahead_ms = ${clockAhead}
          WHERE lease_id = ${leaseId}
          RETURNING lease_id
        ), echo AS (
          SELECT lease_id, pg_notify(${sessionChannel(leaseId)}, ${echoText(number)}) FROM renewed
        )
        SELECT ${positionColumns(sql)}, ${leaseColumns(sql)}, EXISTS (SELECT FROM echo) AS is_held
        FROM (VALUES (1)) AS one LEFT JOIN nodes ON true`;
      const { server, lsn, time, isHeld } = firstRow(rows);
      return {
        position: { server, lsn, time },
        isHeld,
        isReplicated,
        leases: rows.filter((row) => row.leaseId !== null),
      };
    } catch (error) {
      throw databaseError(error);
    } finally {
      signal.removeEventListener("abort", giveUp);
      void opening.end({ timeout: CLOSE_TIMEOUT });
    }
  };
}

/**
 * Sends a barrier, which asks all other nodes to acknowledge every change committed before it, and returns their leases. PostgreSQL
 * sends equal notifications of a transaction once, however many rows select them. Sends nothing without a mark or without other
 * nodes. A barrier that `isDurable` commits like a change, after the synchronous standbys have everything before it.
 */
export async function sendBarrier(sql: Sql, mark: Mark | null, isDurable: boolean): Promise<BarrierAnswer> {
  const { from, number } = mark ?? { from: null, number: 0 };
  const rows = await sql<(DatabasePosition & JoinedLease & { readonly isSynchronous: boolean })[]>`
    SELECT ${positionColumns(sql)}, ${commitsWait(sql)} AS is_synchronous, ${leaseColumns(sql)},
      ${isDurable ? sql`pg_logical_emit_message(true, 'keyhold', 'barrier'),` : sql``}
      CASE WHEN lease_id IS NOT NULL THEN pg_notify(${CHANGES_CHANNEL}, ${barrierText(from ?? "", number)}) END
    FROM (VALUES (1)) AS one LEFT JOIN nodes ON lease_id <> ${from}`;
  const { server, lsn, time, isSynchronous } = firstRow(rows);
  // What is flushed here beside our own change need not be on a standby yet.
  return {
    position: { server, lsn: isSynchronous ? null : lsn, time },
    leases: rows.filter((row) => row.leaseId !== null),
  };
}

/** Whether commits wait for a standby. */
function commitsWait(sql: Sql): Fragment {
  return sql`(current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('local', 'off'))`;
}
