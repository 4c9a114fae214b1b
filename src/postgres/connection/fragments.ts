import type { Fragment, SerializableParameter, Sql } from "postgres";

/** Writes SQL: the driver's tag, with values, or `text`, with the named parameters of a prepared statement (`prepared.ts`) for them. */
export type Tag<F> = (template: TemplateStringsArray, ...values: readonly (NoInfer<F> | SerializableParameter)[]) => F;

export const text: Tag<string> = (template, ...values) => String.raw({ raw: template }, ...values);

/** Returns a string constant (PostgreSQL docs, 4.1.2.1), for statements that take no parameters. Requires `standard_conforming_strings`. */
export function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

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
