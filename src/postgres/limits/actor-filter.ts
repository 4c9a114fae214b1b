import type { Fragment, Sql } from "postgres";
import type { ActorComparison, ActorFilter } from "../../actors/filter.ts";
import { compareStrings, compareTimes, compileExpression } from "../connection/filter-fragments.ts";

/** Returns the SQL condition on a row of `actors` for a filter. It is never NULL: `rate_limits` and `quotas` are null without a limit. */
export function compileActorFilter(sql: Sql, filter: ActorFilter): Fragment {
  return compileExpression<ActorComparison>(sql, filter, (comparison) => {
    const operand = sql`${sql(comparison.field)}`;
    switch (comparison.node) {
      case "string":
        return compareStrings(sql, operand, comparison.operator, comparison.value);
      case "prefix":
        return sql`starts_with(${operand}, ${comparison.value})`;
      case "time":
        return compareTimes(sql, operand, comparison.operator, comparison.value);
      case "limit":
        return sql`(${operand} IS NOT NULL AND ${operand} @> ${sql.json([{ name: comparison.name }])})`;
      case "present":
        return sql`(${operand} IS NOT NULL)`;
    }
  });
}
