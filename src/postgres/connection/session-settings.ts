import type { Sql } from "postgres";
import { CALL_SETTING, PROCESS_CALL } from "./call-context.ts";
import { ForeignSettingError } from "./errors.ts";
import { literal, type Tag, text } from "./fragments.ts";

/**
 * Settings of a session that change the text or the meaning of a result. Each connection pins them, because the role, the database or an
 * earlier client of a pooler may have set others. Reads do not rely on it: behind a transaction pooler, a statement may run in a session
 * that another client has changed since (`value-types.ts`, `checkReported`, `ownSession`).
 *
 * Null: the value that the role, the database or the server configures. An operator may have made the database read-only.
 */
export const PINNED_SETTINGS: Readonly<Record<string, string | null>> = {
  bytea_output: "hex",
  client_encoding: "UTF8",
  DateStyle: "ISO, MDY",
  default_transaction_deferrable: "off",
  default_transaction_isolation: "read committed",
  default_transaction_read_only: null,
  extra_float_digits: "1",
  IntervalStyle: "postgres",
  lock_timeout: "0",
  row_security: "on",
  standard_conforming_strings: "on",
  TimeZone: "UTC",
};

/** The pinned settings that every pooler accepts when a client connects (pgbouncer.org, `ignore_startup_parameters`). */
export const STARTUP_SETTINGS = { DateStyle: "ISO, MDY", standard_conforming_strings: "on", TimeZone: "UTC" };

/**
 * Receives a setting that the server reports because it has changed (PostgreSQL docs, 54.2.7).
 *
 * @throws ForeignSettingError if texts or times cannot be read any more. The driver then ends the connection.
 */
export function checkReported(name: string, value: string): void {
  if (name === "client_encoding" ? value !== "UTF8" : name === "DateStyle" && !value.startsWith("ISO"))
    throw new ForeignSettingError(`the session has the setting ${name} = ${value}`);
}

/**
 * The schema of Keyhold's tables: they must stay visible whatever `search_path` is set later. If they are not, it is the only schema that
 * has them, unless it belongs to others and admits new tables: then it may imitate them.
 */
const SCHEMA = `(
  SELECT nspname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relname = 'used_root_secrets' AND relkind = 'r' AND (pg_table_is_visible(pg_class.oid) OR
    (SELECT count(*) FROM pg_class WHERE relname = 'used_root_secrets' AND relkind = 'r') = 1
      AND (pg_has_role(relowner, 'USAGE') OR NOT has_schema_privilege(relnamespace, 'CREATE')))
)`;

/** The result of the statements with which a connection begins. */
export interface OpenedSession {
  readonly isStandby: boolean;
  /** Null before the first migration. */
  readonly schema: string | null;
}

/**
 * Returns the statements with which a connection begins, in one message of the simple protocol, which every pooler forwards. The last one,
 * which has the result, pins the settings and those of the connection. Temporary tables hide no others. Time limits that another client
 * has left to a pooler end before it: a limit below what it takes would otherwise never be replaced.
 */
export function openingStatements(ownSettings: Readonly<Record<string, string>>): string {
  const pins = Object.entries({ ...PINNED_SETTINGS, ...ownSettings, [CALL_SETTING]: PROCESS_CALL }).map(
    ([name, value]) => `set_config('${name}', ${value === null ? "NULL" : literal(value)}, false)`,
  );
  return `SET statement_timeout = 0; SET lock_timeout = 0;
    SELECT pg_is_in_recovery() AS is_standby, schema, concat(${pins.join(", ")},
    set_config('search_path', coalesce(quote_ident(schema) || ', pg_temp', current_setting('search_path')), false)) AS pinned
    FROM (SELECT ${SCHEMA} AS schema) AS tables`;
}

/** A prepared statement has a parameter for it. */
const schemas = new WeakMap<object, string>([[text, "$schema"]]);

/** Remembers the schema of the tables, which `ownSession` requires. */
export function rememberSchema(sql: Sql, { schema }: OpenedSession): void {
  if (schema !== null) schemas.set(sql, schema);
}

export function schemaOf(sql: Sql): string | null {
  return schemas.get(sql) ?? null;
}

/**
 * Returns a condition that holds in each session whose tables are Keyhold's, and whose changes notify other nodes because triggers run. In
 * any other session, which a pooler may provide, the statement fails (`ForeignSettingError`).
 */
export function ownSession<F>(sql: Tag<F>): F {
  const schema = schemas.get(sql);
  const isOwnSchema =
    schema === undefined ? sql`` : sql`AND current_schema()::text IS NOT DISTINCT FROM ${schema}::text`;
  return sql`(CASE WHEN current_setting('session_replication_role') = 'origin' ${isOwnSchema} THEN true
    ELSE concat(current_setting('session_replication_role'), ', ', current_schema())::pg_lsn IS NULL END)`;
}

/** What other settings must be. Only superusers may change the second one. */
const NEEDED: Readonly<Record<string, string>> = {
  default_transaction_read_only: "off",
  session_replication_role: "origin",
};

/** Milliseconds. Keyhold sets longer ones, but a pooler may drop them. */
const MIN_STATEMENT_TIMEOUT = 10_000;

/** Returns whether a setting has another value than Keyhold needs, whose tables are in this schema. */
export function isForeign({ name, value }: { readonly name: string; readonly value: string }, schema: string): boolean {
  if (name === "search_path") return !value.split(",").some((one) => one.trim().replaceAll('"', "") === schema);
  if (name === "statement_timeout") return toMilliseconds(value) < MIN_STATEMENT_TIMEOUT;
  const pinned = Object.entries({ ...PINNED_SETTINGS, ...NEEDED }).find(
    ([known]) => known.toLowerCase() === name.toLowerCase(),
  );
  return pinned !== undefined && normalized(value) !== normalized(pinned[1] ?? "");
}

function normalized(value: string): string {
  const text = value.toLowerCase().replaceAll(/[\s"']/g, "");
  return /^(true|yes|1|t|y)$/.test(text) ? "on" : /^(false|no|0|f|n)$/.test(text) ? "off" : text;
}

/** Returns the milliseconds of a value with or without a unit; 0, which is no limit, is infinite. */
function toMilliseconds(value: string): number {
  const [, number = "0", unit = "ms"] = /^(\d+)\s*(ms|s|min|h|d)?$/.exec(value) ?? [];
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
  return Number(number) * (units[unit] ?? 1) || Number.POSITIVE_INFINITY;
}
