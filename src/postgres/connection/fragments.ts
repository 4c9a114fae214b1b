import type { Fragment, Sql } from "postgres";

/** Joins fragments by a word, such as `AND`. */
export function joined(sql: Sql, fragments: readonly Fragment[], word: Fragment): Fragment {
  return sql`${fragments.map((one, place) => (place === 0 ? one : sql`${word} ${one}`))}`;
}

/** Returns the condition that holds if all of these do; there must be at least one. */
export function allOf(sql: Sql, conditions: readonly Fragment[]): Fragment {
  return joined(sql, conditions, sql`AND`);
}

/** Returns the rows of all these queries. */
export function unionAll(sql: Sql, queries: readonly Fragment[]): Fragment {
  return joined(sql, queries, sql`UNION ALL`);
}
