import type { Fragment, Sql } from "postgres";
import type { Filter, Operator } from "../../filter/expression.ts";
import { joined } from "./fragments.ts";

/**
 * Returns the SQL condition of a filter, in parentheses where needed. `compare` returns that of a comparison, which must never be NULL: a
 * comparison with an absent value is false. `isNegated`: an odd number of NOT is around it.
 */
export function compileExpression<C extends { readonly node: string }>(
  sql: Sql,
  filter: Filter<C>,
  compare: (comparison: C, isNegated: boolean) => Fragment,
  isNegated = false,
): Fragment {
  if (isComparison(filter)) return compare(filter, isNegated);
  switch (filter.node) {
    case "all":
      return sql`true`;
    case "and":
    case "or": {
      const word = filter.node === "and" ? sql`AND` : sql`OR`;
      const operands = filter.operands.map((operand) => compileExpression(sql, operand, compare, isNegated));
      return sql`(${joined(sql, operands, word)})`;
    }
    case "not":
      return sql`(NOT ${compileExpression(sql, filter.operand, compare, !isNegated)})`;
  }
}

function isComparison<C extends { readonly node: string }>(filter: Filter<C>): filter is C {
  return !["all", "and", "or", "not"].includes(filter.node);
}

/** Compares UUIDs by their bytes. Equality uses an index of the operand, the order one of its `uuid_send`. */
export function compareUuids(sql: Sql, operand: Fragment, operator: Operator, value: string): Fragment {
  if (operator === "=") return sql`(${operand} = ${value})`;
  return sql`(uuid_send(${operand}) ${sql.unsafe(operator)} uuid_send(${value}))`;
}

/** Orders by code point, independent of the collation of the operand; equality uses an index. */
export function compareStrings(sql: Sql, operand: Fragment, operator: Operator, value: string): Fragment {
  if (operator === "=") return sql`(${operand} = ${value})`;
  return sql`(${operand} COLLATE "C" ${sql.unsafe(operator)} ${value})`;
}

/** The value is sent as text: the driver would convert it to a `Date`, which has no microseconds. */
export function compareTimes(sql: Sql, operand: Fragment, operator: Operator, value: string): Fragment {
  return sql`(${operand} ${sql.unsafe(operator)} ${value}::text::timestamptz)`;
}
