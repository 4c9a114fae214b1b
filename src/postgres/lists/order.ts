import type { Fragment, Sql } from "postgres";
import type { ListOrder, ListPosition } from "../../keys/list-order.ts";
import type { ListQuery } from "../../keys/ports.ts";
import { KEY_COLUMNS } from "../keys/rows.ts";
import { compareIds, type KnownRange, timeOf } from "./filter.ts";

/**
 * A part of a list that is one range of an index. A list that is ordered by a field without which a key may be has two: the keys with a value,
 * and those without. A filter such as "not used since" matches the beginning of the first and all of the second; one scan of both would read
 * everything between.
 */
export interface ListPart {
  /** Null if the list is ordered by `create_time`. */
  readonly known: KnownRange | null;
  /** Where the previous page ended; null if the page begins with this part. */
  readonly after: ListPosition | null;
}

/** Returns the parts of a list from the beginning of the page on, in their order. */
export function partsOf({ order: { field, isDescending }, after }: Pick<ListQuery, "order" | "after">): ListPart[] {
  if (field === "create_time") return [{ known: null, after }];
  const presences = field === "name" ? [true] : isDescending ? [false, true] : [true, false];
  const follows = isDescending ? "<" : ">";
  if (after === null) return presences.map((isPresent) => ({ known: { field, isPresent, follows: null }, after }));
  const [isPresent = true, ...rest] = presences.slice(presences.indexOf(after.value !== null));
  return [
    { known: { field, isPresent, follows }, after },
    ...rest.map((isPresent) => ({ known: { field, isPresent, follows: null }, after: null })),
  ];
}

/** Returns the conditions that a key is in this part, after the previous page. */
export function within(sql: Sql, order: ListOrder, { known, after }: ListPart): Fragment[] {
  const conditions = after === null ? [] : [afterKey(sql, order, after)];
  if (known === null || known.field === "name") return conditions;
  // Not `=`, with which the planner would also take an index without the field.
  const operator = known.isPresent ? "<" : ">=";
  const isImplied = known.follows !== null && operator.startsWith(known.follows);
  return isImplied ? conditions : [...conditions, sql`${timeOf(sql, known.field)} ${sql.unsafe(operator)} 'infinity'`];
}

function afterKey(sql: Sql, order: ListOrder, { keyId, value }: ListPosition): Fragment {
  const operator = order.isDescending ? "<" : ">";
  if (order.field === "create_time") return compareIds(sql, operator, keyId);
  const type = order.field === "name" ? sql`text` : sql`timestamptz`;
  return sql`(${orderingValue(sql, order)}, uuid_send(key_id)) ${sql.unsafe(operator)} (${value ?? "infinity"}::text::${type}, uuid_send(${keyId}))`;
}

/** Returns the expression that precedes `key_id` in the order; null if there is none. */
function orderingValue(sql: Sql, { field }: ListOrder): Fragment | null {
  if (field === "create_time") return null;
  return field === "name" ? sql`name` : timeOf(sql, field);
}

/** Returns the columns of the keys of a page. */
export function pageColumns(sql: Sql, { field }: ListOrder): Fragment {
  if (field === "create_time") return sql`${sql(KEY_COLUMNS)}`;
  // JSON has all microseconds of a time, and its time zone, whatever the settings of the session are.
  const value = field === "name" ? sql`name` : sql`to_json(${sql(field)}) #>> '{}'`;
  return sql`${sql(KEY_COLUMNS)}, ${value} AS order_value`;
}

export function sortedBy(sql: Sql, order: ListOrder): Fragment {
  return directed(sql, order, orderingValue(sql, order), sql`uuid_send(key_id)`);
}

/**
 * The columns of the scans of a merge. The planner sees the order of a scan only in a column, and otherwise sorts all rows of all scans.
 * Columns that the merge does not select are not read; to name the others costs the driver time.
 */
export function mergedColumns(sql: Sql, order: ListOrder): Fragment {
  const value = orderingValue(sql, order);
  return sql`*, ${value === null ? sql`` : sql`${value} AS place_value,`} uuid_send(key_id) AS place_id`;
}

/** Returns the order of merged scans. */
export function mergedBy(sql: Sql, order: ListOrder): Fragment {
  return directed(sql, order, orderingValue(sql, order) && sql`place_value`, sql`place_id`);
}

function directed(sql: Sql, { isDescending }: ListOrder, value: Fragment | null, id: Fragment): Fragment {
  const direction = isDescending ? sql`DESC` : sql`ASC`;
  return value === null ? sql`${id} ${direction}` : sql`${value} ${direction}, ${id} ${direction}`;
}
