import type { Fragment, Sql } from "postgres";
import { CALL_FIELDS, type EventComparison, type EventFilter } from "../../audit/filter.ts";
import type { Operator } from "../../filter/expression.ts";
import { joined } from "../connection/fragments.ts";

/** Returns the SQL condition on a row of `audit_events` for a filter, in parentheses. It is never NULL. */
export function compileEventFilter(sql: Sql, filter: EventFilter): Fragment {
  switch (filter.node) {
    case "all":
      return sql`true`;
    case "and":
    case "or": {
      const operands = filter.operands.map((operand) => compileEventFilter(sql, operand));
      return sql`(${joined(sql, operands, filter.node === "and" ? sql`AND` : sql`OR`)})`;
    }
    case "not":
      return sql`(NOT ${compileEventFilter(sql, filter.operand)})`;
    default:
      return compileComparison(sql, filter);
  }
}

function compileComparison(sql: Sql, comparison: EventComparison): Fragment {
  const operand = columnOf(sql, comparison.field);
  const compare = (operator: Operator, value: Fragment) =>
    sql`(${operand} IS NOT NULL AND ${operand} ${sql.unsafe(operator)} ${value})`;
  switch (comparison.node) {
    case "integer":
      return compare(comparison.operator, sql`${String(comparison.value)}::text::bigint`);
    case "time":
      // As text: the driver would convert it to a `Date`, which has no microseconds.
      return compare(comparison.operator, sql`${comparison.value}::text::timestamptz`);
    case "uuid":
      return compare(comparison.operator, sql`${comparison.value}::uuid`);
    case "string":
      return compare(comparison.operator, sql`${comparison.value}`);
    case "prefix":
      return sql`starts_with(action, ${comparison.value})`;
    case "present":
      return sql`(coalesce(${operand}::text, '') <> '')`;
  }
}

/** Those without an index are in the JSON of the call. */
function columnOf(sql: Sql, field: EventComparison["field"]): Fragment {
  const isOfCall = field !== "caller" && CALL_FIELDS.some((name) => name === field);
  return isOfCall ? sql`((call ->> ${field}::text) COLLATE "C")` : sql`${sql(field)}`;
}
