import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";

/** A node as shown to operators. Times are by the clock of the database. */
export interface NodeStatus {
  readonly name: string;
  readonly version: string;
  readonly leaseId: string;
  readonly joinTime: Date;
  /** Time since the last renewal of the lease, in milliseconds. */
  readonly leaseAge: number;
  /** Duration of the lease, in milliseconds. */
  readonly ttl: number;
  /** Delay of notifications at the last renewal of the lease, in milliseconds; null before the first. */
  readonly feedLag: number | null;
  /** The most by which its clock is ahead of the database's, in milliseconds; null if unknown. */
  readonly clockAhead: number | null;
}

/** Returns the nodes that have a lease, or an expired one that was not deleted yet, in the order in which they joined. */
export function listNodes(database: Database): Promise<NodeStatus[]> {
  return database.run(
    (sql) => sql<NodeStatus[]>`
      SELECT name, version, lease_id, join_time, ttl_ms AS ttl, feed_lag_ms::numeric AS feed_lag, clock_ahead_ms::numeric AS clock_ahead,
        extract(epoch FROM clock_timestamp() - renew_time) * 1000 AS lease_age
      FROM nodes WHERE ${ownSession(sql)} ORDER BY join_time, lease_id`,
  );
}
