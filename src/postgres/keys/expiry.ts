import type { Fragment, Sql } from "postgres";
import type { KeyUpdate } from "../../keys/ports.ts";
import { firstRow } from "../connection/first-row.ts";
import { ownSession } from "../connection/session-settings.ts";

/**
 * Returns the latest time by the clocks of this node (`now`), the database and all nodes, as they were at their last renewals. A change
 * judges by it whether a key has expired: a key that was rejected as expired by a node whose clock is ahead must not become valid again.
 */
export function latestTime(sql: Sql, now: Date): Fragment {
  return sql`greatest(${now}::timestamptz, clock_timestamp() + greatest(0, (SELECT max(clock_ahead_ms) FROM nodes)) * interval '1 ms')`;
}

/**
 * Returns the earliest time by the same clocks. A change that only takes access away judges by it: a server whose clock is ahead must not
 * prevent that a key is disabled which others still accept.
 */
export function earliestTime(sql: Sql, now: Date): Fragment {
  return sql`least(${now}::timestamptz, clock_timestamp() + least(0, (SELECT min(clock_ahead_ms) FROM nodes)) * interval '1 ms')`;
}

export async function readTime(sql: Sql, time: Fragment): Promise<Date> {
  return firstRow(await sql<{ time: Date }[]>`SELECT ${time} AS time WHERE ${ownSession(sql)}`).time;
}

/** Returns the condition that a key is neither revoked nor expired by any clock. */
export function active(sql: Sql, now: Date): Fragment {
  return activeAt(sql, latestTime(sql, now));
}

/** Returns the condition that a key is not revoked, and by some clock not expired. */
export function stillActive(sql: Sql, now: Date): Fragment {
  return activeAt(sql, earliestTime(sql, now));
}

function activeAt(sql: Sql, time: Fragment): Fragment {
  return sql`(revoke_time IS NULL AND (expire_time IS NULL OR expire_time > ${time}))`;
}

/** Returns the conditions on the new expiry of a key (`NewExpiry`). */
export function movable(sql: Sql, { expiry }: KeyUpdate, now: Date): Fragment[] {
  if (expiry === undefined) return [];
  const { time, maxKeyTtl } = expiry;
  const isLater = time === null ? sql`true` : sql`${time}::timestamptz > ${latestTime(sql, now)}`;
  return [
    sql`(expire_time IS NOT DISTINCT FROM ${time}::timestamptz OR (${isLater} AND ${withinMaximum(sql, time, maxKeyTtl)}))`,
  ];
}

function withinMaximum(sql: Sql, time: Date | null, maxKeyTtl: number | null): Fragment {
  if (maxKeyTtl === null) return sql`true`;
  if (time === null) return sql`false`;
  return sql`(expire_time IS NULL OR ${time}::timestamptz < expire_time
    OR ${time}::timestamptz <= create_time + ${maxKeyTtl}::float8 * interval '1 ms')`;
}
