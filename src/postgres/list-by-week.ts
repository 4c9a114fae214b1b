import type { Fragment, Sql } from "postgres";
import type { Comparison, Expression, Filter } from "../keys/filter/filter.ts";
import { KEY_COLUMNS } from "./rows.ts";

/** The part of an index with the order of the list within each week (migration 0013) that has every match of a filter. */
export interface WeekRange {
  readonly index: "expiry" | "use";
  /** RFC 3339, both inclusive; null: unbounded. */
  readonly from: string | null;
  readonly to: string | null;
}

/** The `last_used_mark` of a key without one. */
const NEVER = "1970-01-01T00:00:00Z";

/**
 * Returns the weeks in which the matches of a filter are, if it requires a range of `expire_time`, or an end of `last_used_time`. Returns null
 * if there is none, or if the filter names what few keys have, which has an index of its own.
 */
export function weekRangeOf(filter: Filter): WeekRange | null {
  const required = requiredBy(filter);
  if (required.some(isRare)) return null;
  return expiryRange(required) ?? useRange(required);
}

/** Returns the expressions that a match satisfies each. */
function requiredBy(filter: Filter): readonly Expression[] {
  if (filter.node === "all") return [];
  return filter.node === "and" ? filter.operands.flatMap(requiredBy) : [filter];
}

function isRare(expression: Expression): boolean {
  switch (expression.node) {
    case "uuid":
    case "entry":
      return expression.operator === "=";
    case "string":
      return expression.operator === "=" && (expression.field === "actor_id" || expression.field === "name");
    default:
      return expression.node === "prefix";
  }
}

type TimeComparison = Extract<Comparison, { node: "time" }>;

function expiryRange(required: readonly Expression[]): WeekRange | null {
  const times = required.filter((one): one is TimeComparison => one.node === "time" && one.field === "expire_time");
  if (times.length === 0) return null;
  const [from] = times
    .flatMap(({ operator, value }) => (operator.startsWith("<") ? [] : [value]))
    .sort()
    .reverse();
  const [to] = times.flatMap(({ operator, value }) => (operator.startsWith(">") ? [] : [value])).sort();
  return { index: "expiry", from: from ?? null, to: to ?? null };
}

/** There is no beginning: the index may have an earlier time than the row. */
function useRange(required: readonly Expression[]): WeekRange | null {
  const [to] = required.flatMap(usedUntil).sort();
  return to === undefined ? null : { index: "use", from: null, to };
}

/** Returns the time by which every match was last used, if it was used. */
function usedUntil(expression: Expression): string[] {
  const [operand, isBefore] = expression.node === "not" ? [expression.operand, ">"] : [expression, "<"];
  if (operand.node === "time" && operand.field === "last_used_time") {
    return operand.operator.startsWith(isBefore) ? [operand.value] : [];
  }
  const isUnused = expression !== operand && operand.node === "present" && operand.field === "last_used_time";
  return isUnused ? [NEVER] : [];
}

/**
 * Returns the statement of the newest keys of a range that satisfy the conditions, newest first. It visits the weeks that have keys, one
 * after the other, with the newest ids so far: from a later week it reads only what is newer than the last of them. The conditions
 * still have to include the range itself.
 */
export function selectByWeek(
  sql: Sql,
  kind: Fragment,
  { index, from, to }: WeekRange,
  conditions: readonly Fragment[],
  limit: number,
): Fragment {
  const { week, exists, mark } = INDEXES[index];
  const end = to === null ? sql`` : sql`AND ${week(sql)} <= ${to}::text::timestamptz`;
  return sql`
    WITH RECURSIVE weeks (week, ids) AS (
      SELECT ${from ?? "-infinity"}::text::timestamptz - interval '7 days', ARRAY[]::uuid[]
      UNION ALL
      SELECT next.week, ARRAY(
        SELECT id FROM (
          SELECT unnest(weeks.ids) UNION ALL (
            SELECT key_id FROM api_keys
            WHERE ${kind} ${exists(sql)} AND ${week(sql)} = next.week ${to === null ? sql`` : mark(sql, to)}
              AND uuid_send(key_id) > uuid_send(coalesce(weeks.ids[${limit}::int], '00000000-0000-0000-0000-000000000000'))
              ${conditions.map((condition) => sql`AND ${condition}`)}
            ORDER BY uuid_send(key_id) DESC LIMIT ${limit})
        ) AS found (id) ORDER BY id DESC LIMIT ${limit})
      FROM weeks CROSS JOIN LATERAL (
        SELECT ${week(sql)} AS week FROM api_keys
        WHERE ${kind} ${exists(sql)} AND ${week(sql)} > weeks.week ${end}
        ORDER BY ${week(sql)} LIMIT 1) AS next
    )
    SELECT ${sql(KEY_COLUMNS)} FROM api_keys
    WHERE key_id = ANY (ARRAY(SELECT unnest(ids) FROM (SELECT ids FROM weeks ORDER BY week DESC LIMIT 1) AS last))
    ORDER BY uuid_send(key_id) DESC`;
}

interface WeekIndex {
  /** The expression of the index. */
  week(sql: Sql): Fragment;
  /** The condition of the index. */
  exists(sql: Sql): Fragment;
  /** A condition that follows from the end of the range, and is tested within the index. */
  mark(sql: Sql, to: string): Fragment;
}

const INDEXES: { readonly [I in WeekRange["index"]]: WeekIndex } = {
  expiry: {
    week: (sql) => sql`date_bin('7 days', expire_time, '2000-01-03T00:00:00Z')`,
    exists: (sql) => sql`AND expire_time IS NOT NULL`,
    // The filter has the same expression as the index.
    mark: (sql) => sql``,
  },
  use: {
    week: (sql) => sql`coalesce(date_bin('7 days', last_used_mark, '2000-01-03T00:00:00Z'), '1970-01-01T00:00:00Z')`,
    exists: (sql) => sql``,
    mark: (sql, to) => sql`AND coalesce(last_used_mark, '1970-01-01T00:00:00Z') <= ${to}::text::timestamptz`,
  },
};
