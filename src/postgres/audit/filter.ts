import type { Fragment, Sql } from "postgres";
import { CALL_FIELDS, type EventComparison, type EventFilter } from "../../audit/filter.ts";
import { compareStrings, compareTimes, compareUuids, compileExpression } from "../connection/filter-fragments.ts";

/** Returns the SQL condition on a row of `audit_events` for a filter. It is never NULL. */
export function compileEventFilter(sql: Sql, filter: EventFilter): Fragment {
  return compileExpression<EventComparison>(sql, filter, (comparison) => {
    const operand = operandOf(sql, comparison.field);
    const condition = compare(sql, operand, comparison);
    return sql`(${operand} IS NOT NULL AND ${condition})`;
  });
}

function compare(sql: Sql, operand: Fragment, comparison: EventComparison): Fragment {
  switch (comparison.node) {
    case "integer":
      return sql`${operand} ${sql.unsafe(comparison.operator)} ${String(comparison.value)}::text::bigint`;
    case "time":
      return compareTimes(sql, operand, comparison.operator, comparison.value);
    case "uuid":
      return compareUuids(sql, operand, comparison.operator, comparison.value);
    case "string":
      return compareStrings(sql, operand, comparison.operator, comparison.value);
    case "prefix":
      return sql`starts_with(${operand}, ${comparison.value})`;
    case "present":
      return sql`${operand}::text <> ''`;
  }
}

/** The caller has a column of its own, for its index. */
function operandOf(sql: Sql, field: EventComparison["field"]): Fragment {
  const isOfCall = field !== "caller" && CALL_FIELDS.some((name) => name === field);
  return isOfCall ? sql`(call ->> ${field}::text)` : sql`${sql(field)}`;
}
