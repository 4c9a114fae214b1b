import type { Fragment, Sql } from "postgres";
import type { KeyStatus } from "../../domain/key.ts";
import type { Operator, StringComparison, TimeComparison } from "../../filter/expression.ts";
import type { KeyComparison, KeyField, KeyFilter, StringField, TimeField } from "../../keys/filter.ts";
import { compareStrings, compareTimes, compareUuids, compileExpression } from "../connection/filter-fragments.ts";
import { storedReason } from "../keys/rows.ts";

/** What is known of the rows of a part of a list, which is ordered by `field`. */
export interface KnownRange {
  readonly field: "expire_time" | "last_used_time" | "name";
  readonly isPresent: boolean;
  /** How the values compare with that of the last key of the previous page; null for the first page. */
  readonly follows: "<" | ">" | null;
}

/**
 * Returns the SQL condition on a row of `api_keys` for a filter, in parentheses where needed. Every value is a parameter. It is never
 * NULL: for nullable columns the condition defines the result. `now` decides which keys have expired. With `known`, the condition bounds
 * the scan of the index of that field, also by a negated comparison.
 */
export function compileFilter(sql: Sql, filter: KeyFilter, now: Date, known: KnownRange | null = null): Fragment {
  const inverse = negated(known);
  return compileExpression(sql, filter, (comparison, isNegated) =>
    compileComparison(sql, comparison, now, isNegated ? inverse : known),
  );
}

function compileComparison(sql: Sql, comparison: KeyComparison, now: Date, known: KnownRange | null): Fragment {
  switch (comparison.node) {
    case "uuid":
      return compareIds(sql, comparison.operator, comparison.value);
    case "string":
      return compareStringField(sql, comparison, known);
    case "prefix":
      return comparePrefix(sql, comparison.value, known);
    case "time":
      return compareTimeField(sql, comparison, known);
    case "status":
      return STATUS[comparison.value](sql, now, known);
    case "kind":
      return sql`(kind = ${comparison.value})`;
    case "reason":
      return sql`(revoke_time IS NOT NULL AND revocation_reason IS NOT NULL AND revocation_reason = ${storedReason(comparison.value)})`;
    case "hash_algorithm":
      return sql`(hash_algorithm IS NOT NULL AND hash_algorithm = ${comparison.value})`;
    case "adopted":
      return comparison.value ? sql`(adopt_time IS NOT NULL)` : sql`(hash_algorithm IS NOT NULL)`;
    case "scope":
      return sql`(scopes @> ARRAY[${comparison.value}::text])`;
    case "entry":
      return compareEntry(sql, comparison.key, comparison.operator, comparison.value);
    case "key":
      return sql`(metadata ? ${comparison.key})`;
    case "present":
      return isPresent(sql, comparison.field, known);
  }
}

/** Compares key ids by their bytes, like the list indexes (migration 0003); equality uses the primary key. */
export function compareIds(sql: Sql, operator: Operator, keyId: string): Fragment {
  return compareUuids(sql, sql`key_id`, operator, keyId);
}

function compareStringField(
  sql: Sql,
  { field, operator, value }: StringComparison<StringField>,
  known: KnownRange | null,
): Fragment {
  const condition = compareStrings(sql, sql`${sql(field)}`, operator, value);
  if (NULLABLE.has(field)) return sql`(${sql(field)} IS NOT NULL AND ${condition})`;
  return bounding(sql, condition, field, operator, known);
}

/** A text that is greater than what follows the prefix in any name: the last character, as often as a name has characters. */
const AFTER_ANY = "\u{10FFFF}".repeat(256);

function comparePrefix(sql: Sql, prefix: string, known: KnownRange | null): Fragment {
  if (known?.field !== "name") return sql`starts_with(name, ${prefix})`;
  const bound = (operator: Operator, value: string) =>
    compareStringField(sql, { node: "string", field: "name", operator, value }, known);
  const from = bound(">=", prefix);
  const to = bound("<=", prefix + AFTER_ANY);
  return sql`(starts_with(name, ${prefix}) IS TRUE AND ${from} AND ${to})`;
}

/** What is the beginning of a range for a condition is its end for the negated one. */
function negated(known: KnownRange | null): KnownRange | null {
  return known?.follows == null ? known : { ...known, follows: known.follows === "<" ? ">" : "<" };
}

/**
 * Returns a comparison that does not bound the scan of an index on the side where the previous page ended: the rows satisfy the comparison
 * if the last one of that page did. PostgreSQL 18 would begin at this bound, and skip all previous pages.
 */
function bounding(
  sql: Sql,
  condition: Fragment,
  field: KeyField,
  operator: Operator,
  known: KnownRange | null,
): Fragment {
  const isPassed = known?.field === field && known.follows !== null && operator.startsWith(known.follows);
  return isPassed ? sql`(${condition} IS TRUE)` : condition;
}

function compareTimeField(
  sql: Sql,
  { field, operator, value }: TimeComparison<TimeField>,
  known: KnownRange | null,
): Fragment {
  const comparison = compareTimes(sql, timeOf(sql, field), operator, value);
  return sql`(${isPresent(sql, field, known)} AND ${bounding(sql, comparison, field, operator, known)})`;
}

function isPresent(sql: Sql, field: KeyField, known: KnownRange | null): Fragment {
  if (known?.field === field) return known.isPresent ? sql`true` : sql`false`;
  if (NULLABLE.has(field)) return sql`(${sql(field)} IS NOT NULL)`;
  return PRESENT[field]?.(sql) ?? sql`true`;
}

/** Returns the expression that the indexes contain (migrations 0003 and 0023). */
export function timeOf(sql: Sql, field: TimeField): Fragment {
  if (field !== "expire_time" && field !== "last_used_time") return sql`${sql(field)}`;
  return sql`coalesce(${sql(field)}, 'infinity')`;
}

function compareEntry(sql: Sql, key: string, operator: Operator, value: string): Fragment {
  if (operator === "=") return sql`(metadata @> ${sql.json({ [key]: value })})`;
  const entry = sql`(metadata ->> ${key})`;
  return sql`coalesce(${compareStrings(sql, entry, operator, value)}, false)`;
}

function compareExpiry(sql: Sql, operator: "<=" | ">", now: Date, known: KnownRange | null): Fragment {
  const comparison = sql`(${timeOf(sql, "expire_time")} ${sql.unsafe(operator)} ${now})`;
  return bounding(sql, comparison, "expire_time", operator, known);
}

/**
 * Equals `statusAt` of the domain. The condition that `expire_time` is not null lets the planner use the index of the few keys that
 * expire.
 */
const STATUS: { readonly [S in KeyStatus]: (sql: Sql, now: Date, known: KnownRange | null) => Fragment } = {
  ACTIVE: (sql, now, known) =>
    sql`(revoke_time IS NULL AND ${compareExpiry(sql, ">", now, known)} AND disable_time IS NULL)`,
  REVOKED: (sql) => sql`(revoke_time IS NOT NULL)`,
  EXPIRED: (sql, now, known) =>
    sql`(revoke_time IS NULL AND expire_time IS NOT NULL AND ${compareExpiry(sql, "<=", now, known)})`,
  DISABLED: (sql, now, known) =>
    sql`(revoke_time IS NULL AND ${compareExpiry(sql, ">", now, known)} AND disable_time IS NOT NULL)`,
};

/** Fields that are columns, which are null if they are empty. */
const NULLABLE: ReadonlySet<KeyField> = new Set([
  ...["expire_time", "last_used_time", "rotate_time", "revoke_time", "disable_time", "created_by", "revoked_by"],
  ...["disabled_by", "hash_algorithm"],
] as const);

/** The condition of `:*` for the other fields that may be empty. */
const PRESENT: { readonly [F in KeyField]?: (sql: Sql) => Fragment } = {
  scopes: (sql) => sql`(cardinality(scopes) > 0)`,
  metadata: (sql) => sql`(metadata <> '{}')`,
  hint: (sql) => sql`(hint <> '')`,
  adopted: (sql) => sql`(adopt_time IS NOT NULL)`,
  revocation_reason: (sql) =>
    sql`(revocation_reason IS NOT NULL AND revocation_reason <> 'REVOCATION_REASON_UNSPECIFIED')`,
};
