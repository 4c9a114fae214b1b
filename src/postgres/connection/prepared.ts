import type { JSONValue, ParameterOrJSON, PendingQuery, Sql } from "postgres";
import { schemaOf } from "./session-settings.ts";

/** A statement whose text never changes, so that each connection prepares it once. */
export interface Prepared {
  readonly text: string;
  /** The names of `$1` and so on. */
  readonly names: readonly string[];
}

/** Values of parameters by name. */
export type Values = Readonly<Record<string, ParameterOrJSON<never> | readonly string[] | Readonly<JSONValue>>>;

/** An execution of a prepared statement. */
export interface Execution {
  readonly statement: Prepared;
  readonly values: Values;
}

const PARAMETER = /\$([a-z]\w*)/gi;

/** Returns the statement of a text with named parameters, such as `$keyId`. The value of `$schema` is that of the connection. */
export function prepared(named: string): Prepared {
  const names = [...new Set(Array.from(named.matchAll(PARAMETER), ([, name = ""]) => name))];
  return { text: named.replace(PARAMETER, (_, name) => `$${names.indexOf(name) + 1}`), names };
}

/**
 * Sends a prepared statement. Times are sent as text: the driver infers the type of a `Date`, but none of null, and would prepare a statement
 * for each.
 */
export function execute<R extends object>(sql: Sql, { statement, values }: Execution): PendingQuery<R[]> {
  const own: Values = { ...values, schema: schemaOf(sql) };
  const ordered = statement.names.map((name) => {
    const value = own[name];
    return value instanceof Date ? value.toISOString() : value;
  });
  return sql.unsafe(statement.text, ordered as ParameterOrJSON<never>[], { prepare: true });
}
