import type { Fragment, Sql } from "postgres";
import type { KeyKind } from "../../domain/key.ts";
import type { Comparison, Expression, Filter } from "../../keys/filter/filter.ts";
import { allOf, unionAll } from "../connection/fragments.ts";
import { ownSession } from "../connection/session-settings.ts";
import { KEY_COLUMNS } from "../keys/rows.ts";

/** The weeks of an index (migration 0013) in which every match of a filter is. The index has the order of the list within each week. */
export interface WeekRange {
  readonly index: "expiry" | "use";
  /** RFC 3339, both inclusive; null: unbounded. */
  readonly from: string | null;
  readonly to: string | null;
}

/** The `last_used_mark` of a key without one. */
const NEVER = "1970-01-01T00:00:00Z";

/**
 * Returns the weeks of a filter that requires a range of `expire_time`, or an end of `last_used_time`. Returns null if it requires neither,
 * or requires what few keys have: that has an index of its own.
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
  const bounds = required.filter((one): one is TimeComparison => one.node === "time" && one.field === "expire_time");
  if (bounds.length === 0) return null;
  const from = bounds.filter(({ operator }) => !operator.startsWith("<")).map(({ value }) => value);
  const to = bounds.filter(({ operator }) => !operator.startsWith(">")).map(({ value }) => value);
  return { index: "expiry", from: from.sort().at(-1) ?? null, to: to.sort()[0] ?? null };
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

const WEEK = 7 * 86_400_000;
/** The beginning of a week, like that of the indexes. */
const ORIGIN = Date.parse("2000-01-03T00:00:00Z");
const FEW = 8;

interface FewWeeks {
  /** The beginning of the last week. */
  readonly last: string;
  readonly count: number;
}

/** Returns the weeks of a range of `expire_time` if they are few: then all are visited, whether they have keys or not. */
function fewWeeksOf({ index, from, to }: WeekRange): FewWeeks | null {
  if (index !== "expiry" || from === null || to === null) return null;
  const [first, last] = [from, to].map((time) => Math.floor((Date.parse(time) - ORIGIN) / WEEK));
  if (first === undefined || last === undefined || last - first >= FEW) return null;
  return { last: new Date(ORIGIN + last * WEEK).toISOString(), count: Math.max(last - first + 1, 0) };
}

/**
 * Returns the statement of the newest keys of a range that satisfy the conditions, newest first. The conditions still have to include the
 * range itself. It visits the weeks that have keys, from the last one back, with the newest ids so far: from each week it reads only what is
 * newer than the last of them. It ends at the weeks before the creation of that one, because a key is used, and expires, after its
 * creation. Keys that were never used are in no week and come first.
 *
 * Planning is most of the cost of a page, and grows with each mention of the table: there is one scan of each kind for all weeks. The scans
 * of a week are merged by their column `place`, and end together when the page is full.
 */
export function selectByWeek(
  sql: Sql,
  kinds: readonly KeyKind[],
  range: WeekRange,
  conditions: readonly Fragment[],
  limit: number,
): Fragment {
  const { week, exists, mark } = INDEXES[range.index];
  const last = sql`visits.ids[${limit}::int]`;
  const scans = kinds.map(
    (kind) => sql`(
            SELECT key_id, uuid_send(key_id) AS place FROM api_keys
            WHERE kind = ${kind} ${exists(sql)} AND ${week(sql)} = next.week
              AND uuid_send(key_id) > uuid_send(coalesce(${last}, '00000000-0000-0000-0000-000000000000'))
              ${range.to === null ? sql`` : mark(sql, range.to)} AND ${allOf(sql, conditions)}
            ORDER BY uuid_send(key_id) DESC LIMIT ${limit})`,
  );
  return sql`
    WITH RECURSIVE visits (visit, week, ids) AS (
      SELECT 0, NULL::timestamptz, '{}'::uuid[]
      UNION ALL
      SELECT visit + 1, next.week, CASE WHEN found.ids = '{}' THEN visits.ids ELSE ARRAY(
        SELECT unnest(visits.ids || found.ids) AS id ORDER BY id DESC LIMIT ${limit}) END
      FROM visits CROSS JOIN LATERAL (SELECT ${nextWeek(sql, kinds, range, last)} AS week OFFSET 0) AS next CROSS JOIN LATERAL (
        -- OFFSET keeps it from being evaluated twice.
        SELECT ARRAY(
          SELECT key_id FROM (${unionAll(sql, scans)}) AS keys ORDER BY place DESC LIMIT ${limit}) AS ids OFFSET 0
      ) AS found
      WHERE next.week IS NOT NULL
    )
    ${selectKeys(sql)}
    WHERE ${ownSession(sql)} AND key_id = ANY (ARRAY(SELECT unnest(ids) FROM (SELECT ids FROM visits ORDER BY visit DESC LIMIT 1) AS last))
    ORDER BY uuid_send(key_id) DESC`;
}

/** A fragment of its own: the driver searches all text of a fragment before the columns for their keyword, which takes long (3.4.9). */
function selectKeys(sql: Sql): Fragment {
  return sql`SELECT ${sql(KEY_COLUMNS)} FROM api_keys`;
}

/** Returns a table `kinds` of the column `this`. Not of an array: without its value the planner expects more kinds. */
function rowsOf(sql: Sql, kinds: readonly KeyKind[]): Fragment {
  const rows = kinds.map((kind, place) => sql`${place === 0 ? sql`` : sql`,`} (${kind})`);
  return sql`(VALUES ${rows}) AS kinds (this)`;
}

/** Returns the beginning of the week of the next visit; it is null if there is none. */
function nextWeek(sql: Sql, kinds: readonly KeyKind[], range: WeekRange, last: Fragment): Fragment {
  const few = fewWeeksOf(range);
  if (few !== null) {
    return sql`CASE WHEN visit < ${few.count}::int THEN ${few.last}::text::timestamptz - visit * interval '7 days' END`;
  }
  const before = weekBefore(sql, kinds, range, last);
  return INDEXES[range.index].unused
    ? sql`CASE WHEN visit = 0 THEN ${NEVER}::text::timestamptz ELSE (${before}) END`
    : sql`(${before})`;
}

/** Selects the last week with keys before that of the visit. */
function weekBefore(sql: Sql, kinds: readonly KeyKind[], { index, from, to }: WeekRange, last: Fragment): Fragment {
  const { week, exists } = INDEXES[index];
  return sql`
    SELECT before.week FROM ${rowsOf(sql, kinds)} CROSS JOIN LATERAL (
      SELECT ${week(sql)} AS week FROM api_keys
      WHERE kind = kinds.this ${exists(sql)} AND ${week(sql)} < coalesce(nullif(visits.week, ${NEVER}::text::timestamptz), 'infinity')
        AND ${week(sql)} > greatest(${from ?? NEVER}::text::timestamptz - interval '7 days', ${NEVER}::text::timestamptz,
          to_timestamp(('x' || left(replace(${last}::text, '-', ''), 12))::bit(48)::int8 / 1000.0) - interval '8 days')
        ${to === null ? sql`` : sql`AND ${week(sql)} <= ${to}::text::timestamptz`}
      ORDER BY ${week(sql)} DESC LIMIT 1
    ) AS before ORDER BY before.week DESC LIMIT 1`;
}

interface WeekIndex {
  /** The expression of the index. */
  week(sql: Sql): Fragment;
  /** The condition of the index. */
  exists(sql: Sql): Fragment;
  /** Whether the index has keys without a time. */
  readonly unused: boolean;
  /** A condition that follows from the end of the range, and is tested within the index. */
  mark(sql: Sql, to: string): Fragment;
}

const INDEXES: { readonly [I in WeekRange["index"]]: WeekIndex } = {
  expiry: {
    week: (sql) => sql`date_bin('7 days', expire_time, '2000-01-03T00:00:00Z')`,
    exists: (sql) => sql`AND expire_time IS NOT NULL`,
    unused: false,
    // The filter has the same expression as the index.
    mark: (sql) => sql``,
  },
  use: {
    week: (sql) => sql`coalesce(date_bin('7 days', last_used_mark, '2000-01-03T00:00:00Z'), '1970-01-01T00:00:00Z')`,
    exists: (sql) => sql``,
    unused: true,
    mark: (sql, to) => sql`AND coalesce(last_used_mark, '1970-01-01T00:00:00Z') <= ${to}::text::timestamptz`,
  },
};
