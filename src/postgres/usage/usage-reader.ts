import type { Fragment, PendingQuery, Sql } from "postgres";
import { fieldError } from "../../domain/errors.ts";
import { KEY_KINDS } from "../../domain/key.ts";
import type { Restrictions } from "../../domain/principal.ts";
import { DAY, HOUR, type UsageCount, type UsagePage, type UsageQuery, type UsageReader } from "../../usage/query.ts";
import { codeOf, QUERY_CANCELED } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import { allOf } from "../connection/fragments.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { isVisible } from "../keys/authorization.ts";

const TOO_SLOW = "selects too many counts; shorten the period, or name a key or an actor";

export function createUsageReader(lists: Database): UsageReader {
  return {
    query: async (query, page, restrictions) => {
      try {
        return await lists.run(
          async (sql) => select(sql, query, page, restrictions, firstRow(await readFirstDay(sql)).firstDay),
          "usage.query",
        );
      } catch (error) {
        if (codeOf(error) !== QUERY_CANCELED) throw error;
        throw fieldError("LIST_TOO_SLOW", "start_time", TOO_SLOW);
      }
    },
  };
}

/**
 * Returns the first day that has hours. A statement of its own, because the planner must know it. The partitions of earlier days are dropped much
 * later than this changes.
 */
function readFirstDay(sql: Sql): PendingQuery<{ firstDay: string }[]> {
  return sql`SELECT first_day::text FROM usage_log WHERE ${ownSession(sql)}`;
}

/** The actors are joined last, to the rows of the page, unless the counts are grouped by them. */
function select(
  sql: Sql,
  query: UsageQuery,
  { offset, limit }: UsagePage,
  restrictions: Restrictions,
  firstDay: string,
): PendingQuery<UsageCount[]> {
  const { groupBy, step } = query;
  const none = (type: Fragment) => sql`NULL::${type}`;
  const key = groupBy.includes("key") ? sql`key_id` : none(sql`uuid`);
  const outcome = groupBy.includes("outcome") ? sql`outcome` : none(sql`text`);
  const actor = groupBy.includes("actor") ? sql`actor_id` : none(sql`text`);
  const actors = groupBy.includes("actor")
    ? sql`LEFT JOIN (SELECT key_id, actor_id FROM api_keys) AS keys USING (key_id)`
    : sql``;
  return sql<UsageCount[]>`
    SELECT time, key_id, coalesce(page.actor_id, api_keys.actor_id) AS actor_id, outcome, count FROM (
      SELECT ${timeOf(sql, step)} AS time, ${key} AS key_id, ${actor} AS actor_id, ${outcome} AS outcome, ${isStored(query) ? sql`count::numeric` : sql`sum(count)`} AS count
      FROM (${source(sql, query, restrictions, firstDay)}) AS counted ${actors} WHERE ${ownSession(sql)}
      ${isStored(query) ? sql`` : sql`GROUP BY 1, 2, 3, 4`} ORDER BY 1, 5 DESC, 2, 3, 4 OFFSET ${offset} LIMIT ${limit}
    ) AS page LEFT JOIN api_keys USING (key_id) WHERE count IS NOT NULL ORDER BY time, count DESC, key_id, actor_id, outcome`;
}

/** Returns whether the rows of the table are the counts: those of one day and outcome, by key. A million of them are not grouped within seconds. */
function isStored({ groupBy, outcome, step, startTime, endTime }: UsageQuery): boolean {
  const isDay = startTime.getTime() % DAY === 0 && endTime.getTime() - startTime.getTime() === DAY;
  return isDay && step !== HOUR && outcome !== undefined && groupBy.includes("key") && !groupBy.includes("actor");
}

function timeOf(sql: Sql, step: number | null): Fragment {
  if (step === null) return sql`NULL::timestamptz`;
  return step === DAY
    ? sql`day::timestamp AT TIME ZONE 'UTC'`
    : sql`(day + hour * interval '1 hour') AT TIME ZONE 'UTC'`;
}

/** Returns the counts that a query adds up, by day if that is precise enough. Days before `firstDay` have no hours. */
function source(sql: Sql, query: UsageQuery, restrictions: Restrictions, firstDay: string): Fragment {
  const { startTime, endTime, step } = query;
  const [start, end] = [startTime.getTime(), endTime.getTime()];
  const from = [dayOf(start), firstDay].toSorted().at(-1) ?? firstDay;
  const conditions = allOf(sql, conditionsOf(sql, query, restrictions));
  if (step !== HOUR && start % DAY === 0 && end % DAY === 0) {
    const ofDays = sql`SELECT key_id, day, outcome, count FROM key_usage WHERE ${conditions} AND ${days(sql, from, dayOf(end - 1))}`;
    if (from === dayOf(start)) return ofDays;
    const last = dayOf(Math.min(end, Date.parse(firstDay)) - 1);
    return sql`${ofDays} UNION ALL SELECT key_id, day, outcome, count FROM key_usage_daily
      WHERE ${conditions} AND ${days(sql, dayOf(start), last)}`;
  }
  const time = sql`(day + hour * interval '1 hour')`;
  return sql`
    SELECT key_id, day, outcome, hour, hours[hour] AS count FROM key_usage CROSS JOIN generate_series(0, 23) AS hour
    WHERE ${conditions} AND ${days(sql, from, dayOf(end - 1))} AND hours[hour] IS NOT NULL
      AND ${time} >= ${timestampOf(start)}::timestamp AND ${time} < ${timestampOf(end)}::timestamp`;
}

/** Constants, from which the planner chooses the partitions and estimates their rows. */
function days(sql: Sql, first: string, last: string): Fragment {
  return first === last ? sql`day = ${first}::date` : sql`day BETWEEN ${first}::date AND ${last}::date`;
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function timestampOf(time: number): string {
  return new Date(time).toISOString().slice(0, 19);
}

/** The keys of few actors are looked up by an array; all of a kind are joined. */
function conditionsOf(sql: Sql, { keyId, actorId, kind, outcome }: UsageQuery, { actorIds }: Restrictions): Fragment[] {
  const ofKey = [
    ...(actorId === undefined ? [] : [sql`actor_id = ${actorId}`]),
    // The indexes by actor begin with the kind.
    sql`kind = ANY (${kind === undefined ? [...KEY_KINDS] : [kind]}::text[])`,
    ...(actorIds === null ? [] : [isVisible<Fragment>(sql, { actorIds: [...actorIds] })]),
    ...(keyId === undefined ? [] : [sql`key_id = ${keyId}::uuid`]),
  ];
  const keys = sql`SELECT key_id FROM api_keys WHERE ${allOf(sql, ofKey)}`;
  const isSmall = keyId !== undefined || actorId !== undefined || actorIds !== null;
  const isByKey = actorId !== undefined || kind !== undefined || actorIds !== null;
  return [
    ...(keyId === undefined ? [] : [sql`key_id = ${keyId}::uuid`]),
    ...(isByKey ? [isSmall ? sql`key_id = ANY (ARRAY (${keys}))` : sql`key_id IN (${keys})`] : []),
    ...(outcome === undefined ? [sql`true`] : [sql`outcome = ${outcome}`]),
  ];
}
