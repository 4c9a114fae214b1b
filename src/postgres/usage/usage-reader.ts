import type { Fragment, PendingQuery, Sql } from "postgres";
import type { Restrictions } from "../../domain/principal.ts";
import { UNITS } from "../../usage/counter.ts";
import {
  DAY,
  HOUR,
  isOfUnits,
  type UsageCount,
  type UsagePage,
  type UsageQuery,
  type UsageReader,
} from "../../usage/query.ts";
import { pageInTime } from "../connection/errors.ts";
import { firstRow } from "../connection/first-row.ts";
import type { Database } from "../connection/pool.ts";
import { ownSession } from "../connection/session-settings.ts";
import { countsOf, dayOf, storedName } from "./usage-counts.ts";

const TOO_SLOW = "selects too many counts; shorten the period, or name a key or an actor";

export function createUsageReader(lists: Database): UsageReader {
  return {
    query: (query, page, restrictions) => {
      const found = lists.run(
        async (sql) => select(sql, query, page, restrictions, firstRow(await readFirstDay(sql)).firstDay),
        "usage.query",
      );
      return pageInTime(found, "start_time", TOO_SLOW);
    },
  };
}

/** Returns the first day that is not packed. A statement of its own, because the planner must know it. */
function readFirstDay(sql: Sql): PendingQuery<{ firstDay: string }[]> {
  return sql`SELECT first_day::text FROM usage_log WHERE ${ownSession(sql)}`;
}

/** The actors are joined last, to the rows of the page, unless the counts are grouped by them. */
function select(
  sql: Sql,
  query: UsageQuery,
  page: UsagePage,
  restrictions: Restrictions,
  firstDay: string,
): PendingQuery<UsageCount[]> {
  const { groupBy, step } = query;
  const none = (type: Fragment) => sql`NULL::${type}`;
  const key = groupBy.includes("key") ? sql`key_id` : none(sql`uuid`);
  const name = groupBy.includes("outcome") || groupBy.includes("limit") ? sql`outcome` : none(sql`text`);
  const names = isOfUnits(query)
    ? sql`NULL AS outcome, substr(page.outcome, ${UNITS.length + 1}) AS "limit"`
    : sql`page.outcome, NULL AS "limit"`;
  const actor = groupBy.includes("actor") ? sql`actor_id` : none(sql`text`);
  const actors = groupBy.includes("actor")
    ? sql`LEFT JOIN (SELECT key_id, actor_id FROM api_keys) AS keys USING (key_id)`
    : sql``;
  const isTop = isInTop(query, page, restrictions, firstDay);
  const isSummed = !isTop && !isStored(query);
  return sql<UsageCount[]>`
    SELECT time, key_id, coalesce(page.actor_id, api_keys.actor_id) AS actor_id, ${names}, count FROM (
      SELECT ${timeOf(sql, step)} AS time, ${key} AS key_id, ${actor} AS actor_id, ${name} AS outcome, ${isSummed ? sql`sum(count)` : sql`count::numeric`} AS count
      FROM (${isTop ? top(sql, query) : countsOf(sql, query, restrictions, firstDay)}) AS counted ${actors} WHERE ${ownSession(sql)}
      ${isSummed ? sql`GROUP BY 1, 2, 3, 4` : sql``} ORDER BY 1, 5 DESC, 2, 3, 4 OFFSET ${page.offset} LIMIT ${page.limit}
    ) AS page LEFT JOIN api_keys USING (key_id) WHERE count IS NOT NULL ORDER BY time, count DESC, key_id, actor_id, page.outcome`;
}

/** Keys per day and outcome in `top_usage`. */
const MAX_TOP = 1_001;

/** Returns whether `top_usage` has the page: that of verifications on a day that is packed, of all keys. */
function isInTop(
  query: UsageQuery,
  { offset, limit }: UsagePage,
  { actorIds }: Restrictions,
  firstDay: string,
): boolean {
  const { keyId, actorId, kind, startTime } = query;
  const hasFilter = [keyId, actorId, kind, actorIds ?? undefined].some((value) => value !== undefined);
  const isPacked = dayOf(startTime.getTime()) < firstDay;
  return isDayOfKeys(query) && !isOfUnits(query) && !hasFilter && isPacked && offset + limit <= MAX_TOP;
}

function top(sql: Sql, { startTime, groupBy, outcome = "" }: UsageQuery): Fragment {
  const isEach = outcome === "" && groupBy.includes("outcome");
  return sql`
    SELECT key_id, day, outcome, count FROM top_usage
    WHERE day = ${dayOf(startTime.getTime())}::date AND ${isEach ? sql`outcome <> ''` : sql`outcome = ${outcome}`}`;
}

/** Returns whether each count is stored. A million of them are not grouped within seconds. */
function isStored(query: UsageQuery): boolean {
  return isDayOfKeys(query) && storedName(query) !== undefined && !query.groupBy.includes("actor");
}

/** Returns whether the counts are those of one whole day, by key. */
function isDayOfKeys({ groupBy, step, startTime, endTime }: UsageQuery): boolean {
  const isDay = startTime.getTime() % DAY === 0 && endTime.getTime() - startTime.getTime() === DAY;
  return isDay && step !== HOUR && groupBy.includes("key");
}

function timeOf(sql: Sql, step: number | null): Fragment {
  if (step === null) return sql`NULL::timestamptz`;
  return step === DAY
    ? sql`day::timestamp AT TIME ZONE 'UTC'`
    : sql`(day + hour * interval '1 hour') AT TIME ZONE 'UTC'`;
}
