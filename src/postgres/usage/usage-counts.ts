import type { Fragment, Sql } from "postgres";
import { KEY_KINDS } from "../../domain/key.ts";
import type { Restrictions } from "../../domain/principal.ts";
import { UNITS } from "../../usage/counter.ts";
import { DAY, HOUR, isOfUnits, type UsageQuery } from "../../usage/query.ts";
import { allOf, unionAll } from "../connection/fragments.ts";
import { isVisible } from "../keys/authorization.ts";

/** Returns the counts that a query adds up, by day if that is precise enough. Days before `firstDay` are packed. */
export function countsOf(sql: Sql, query: UsageQuery, restrictions: Restrictions, firstDay: string): Fragment {
  const { startTime, endTime, step } = query;
  const [start, end] = [startTime.getTime(), endTime.getTime()];
  const byHour = step === HOUR || start % DAY !== 0 || end % DAY !== 0;
  const selection = { ...selectionOf(sql, query, restrictions), byHour };
  const live = { ...selection, first: [dayOf(start), firstDay].toSorted().at(-1) ?? firstDay, last: dayOf(end - 1) };
  const packed = { ...selection, first: dayOf(start), last: dayOf(Math.min(end, Date.parse(firstDay)) - 1) };
  const parts = [
    ...(live.first <= live.last ? [liveCounts(sql, live)] : []),
    ...(packed.first <= packed.last ? [packedCounts(sql, packed)] : []),
  ];
  if (!byHour) return unionAll(sql, parts);
  const time = sql`(day + hour * interval '1 hour')`;
  return sql`
    SELECT * FROM (${unionAll(sql, parts)}) AS of_hours WHERE count IS NOT NULL
    AND ${time} >= ${timestampOf(start)}::timestamp AND ${time} < ${timestampOf(end)}::timestamp`;
}

/** Which keys, outcomes and days to read. */
interface Selection {
  /** An array of few keys, which are looked up; null: `condition` selects them. */
  readonly keyIds: Fragment | null;
  /** On `key_id` and `outcome`. */
  readonly condition: Fragment;
  readonly first: string;
  readonly last: string;
  readonly byHour: boolean;
}

function liveCounts(sql: Sql, { keyIds, condition, byHour, ...period }: Selection): Fragment {
  const where = sql`WHERE ${condition} AND ${days(sql, period)} ${keyIds === null ? sql`` : sql`AND key_id = ANY (${keyIds})`}`;
  return byHour
    ? sql`SELECT key_id, day, outcome, hours[hour] AS count, hour FROM key_usage CROSS JOIN generate_series(0, 23) AS hour ${where}`
    : sql`SELECT key_id, day, outcome, count FROM key_usage ${where}`;
}

/** The hours are read of the elements that match. */
function packedCounts(sql: Sql, { keyIds, condition, byHour, ...period }: Selection): Fragment {
  const entries = keyIds === null ? allEntries(sql) : entriesOf(sql, keyIds, period);
  const where = sql`WHERE ${condition} AND ${days(sql, period)}`;
  if (!byHour) return sql`SELECT key_id, day, outcome, of_day AS count FROM ${entries} ${where}`;
  return sql`
    SELECT key_id, day, outcome, of_hour.count, hour::integer - 1 AS hour FROM ${entries} CROSS JOIN LATERAL (
      SELECT hours[place:place] AS hours FROM packed_usage_hours AS found
      WHERE (found.day, found.first_key_id) = (packed_usage.day, packed_usage.first_key_id) AND ${days(sql, period)} LIMIT 1
    ) AS of_entry CROSS JOIN LATERAL unnest(hours) WITH ORDINALITY AS of_hour (count, hour) ${where}`;
}

function allEntries(sql: Sql): Fragment {
  return sql`packed_usage CROSS JOIN LATERAL unnest(key_ids, outcomes, counts) WITH ORDINALITY AS entry (key_id, outcome, of_day, place)`;
}

/** The row of each key and day that has the key if any has, and of it only the elements of the key, which takes a fraction of the time. */
function entriesOf(sql: Sql, keyIds: Fragment, period: Pick<Selection, "first" | "last">): Fragment {
  return sql`
    unnest(${keyIds}) AS wanted_key_id
    CROSS JOIN generate_series(${period.first}::date, ${period.last}::date, interval '1 day') AS wanted_day
    CROSS JOIN LATERAL (
      SELECT * FROM packed_usage WHERE day = wanted_day::date AND first_key_id <= wanted_key_id AND ${days(sql, period)}
      ORDER BY first_key_id DESC LIMIT 1
    ) AS packed_usage CROSS JOIN LATERAL (
      SELECT wanted_key_id AS key_id, outcomes[place] AS outcome, counts[place] AS of_day, place
      FROM unnest(array_positions(key_ids, wanted_key_id)) AS place
    ) AS entry`;
}

/** Constants, from which the planner chooses the partitions and estimates their rows. */
function days(sql: Sql, { first, last }: Pick<Selection, "first" | "last">): Fragment {
  return first === last ? sql`day = ${first}::date` : sql`day BETWEEN ${first}::date AND ${last}::date`;
}

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function timestampOf(time: number): string {
  return new Date(time).toISOString().slice(0, 19);
}

/** Returns the name by which the counts of a query are stored, if it is one. */
export function storedName({ outcome, limit }: UsageQuery): string | undefined {
  return limit === undefined ? outcome : UNITS + limit;
}

function isNamed(sql: Sql, query: UsageQuery): Fragment {
  const name = storedName(query);
  if (name !== undefined) return sql`outcome = ${name}`;
  return isOfUnits(query) ? sql`outcome LIKE ${`${UNITS}%`}` : sql`outcome NOT LIKE ${`${UNITS}%`}`;
}

/** The keys of few actors are looked up by an array; all of a kind are joined. */
function selectionOf(sql: Sql, query: UsageQuery, { actorIds }: Restrictions): Pick<Selection, "keyIds" | "condition"> {
  const { keyId, actorId, kind } = query;
  const ofKey = [
    ...(actorId === undefined ? [] : [sql`actor_id = ${actorId}`]),
    // The indexes by actor begin with the kind.
    sql`kind = ANY (${kind === undefined ? [...KEY_KINDS] : [kind]}::text[])`,
    ...(actorIds === null ? [] : [isVisible<Fragment>(sql, { actorIds: [...actorIds] })]),
    ...(keyId === undefined ? [] : [sql`key_id = ${keyId}::uuid`]),
  ];
  const keys = sql`SELECT key_id FROM api_keys WHERE ${allOf(sql, ofKey)}`;
  const named = isNamed(sql, query);
  if (actorId !== undefined || actorIds !== null || (keyId !== undefined && kind !== undefined))
    return { keyIds: sql`ARRAY (${keys})`, condition: named };
  if (keyId !== undefined) return { keyIds: sql`ARRAY[${keyId}::uuid]`, condition: named };
  return { keyIds: null, condition: kind === undefined ? named : sql`${named} AND key_id IN (${keys})` };
}
