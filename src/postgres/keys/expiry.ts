import type { Fragment, SerializableParameter, Sql } from "postgres";
import { firstRow } from "../connection/first-row.ts";
import type { Tag } from "../connection/fragments.ts";
import { ownSession } from "../connection/session-settings.ts";

/**
 * Returns the latest time by the clocks of this node (`now`), the database and all nodes, as they were at their last renewals. A change
 * judges by it whether a key has expired: a key that was rejected as expired by a node whose clock is ahead must not become valid again.
 */
export function latestTime<F>(sql: Tag<F>, now: SerializableParameter): F {
  return sql`greatest(${now}::timestamptz, clock_timestamp() + greatest(0, (SELECT max(clock_ahead_ms) FROM nodes)) * interval '1 ms')`;
}

/**
 * Returns the earliest time by the same clocks. A change that only takes access away judges by it: a server whose clock is ahead must not
 * prevent that a key is disabled which others still accept.
 */
export function earliestTime<F>(sql: Tag<F>, now: SerializableParameter): F {
  return sql`least(${now}::timestamptz, clock_timestamp() + least(0, (SELECT min(clock_ahead_ms) FROM nodes)) * interval '1 ms')`;
}

export async function readTime(sql: Sql, time: Fragment): Promise<Date> {
  return firstRow(await sql<{ time: Date }[]>`SELECT ${time} AS time WHERE ${ownSession(sql)}`).time;
}

/** Returns the condition that a key is neither revoked nor expired by any clock. */
export function active<F>(sql: Tag<F>, now: SerializableParameter): F {
  return activeAt(sql, latestTime(sql, now));
}

/** Returns the condition that a key is not revoked, and by some clock not expired. */
export function stillActive<F>(sql: Tag<F>, now: SerializableParameter): F {
  return activeAt(sql, earliestTime(sql, now));
}

function activeAt<F>(sql: Tag<F>, time: F): F {
  return sql`(revoke_time IS NULL AND (expire_time IS NULL OR expire_time > ${time}))`;
}
