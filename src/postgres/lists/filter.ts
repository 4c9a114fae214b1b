import type { Fragment, Sql } from "postgres";
import type { KeyStatus } from "../../domain/key.ts";
import type { Comparison, FieldName, Filter, Operator, StringField, TimeField } from "../../keys/filter/filter.ts";
import { joined } from "../connection/fragments.ts";
import { storedReason } from "../keys/rows.ts";

/**
 * Returns the SQL condition on a row of `api_keys` for a filter, in parentheses where needed. Every value is a parameter. It is never
 * NULL: for nullable columns the condition defines the result. `now` decides which keys have expired.
 */
export function compileFilter(sql: Sql, filter: Filter, now: Date): Fragment {
  switch (filter.node) {
    case "all":
      return sql`true`;
    case "and":
    case "or": {
      const word = filter.node === "and" ? sql`AND` : sql`OR`;
      const operands = filter.operands.map((operand) => compileFilter(sql, operand, now));
      return sql`(${joined(sql, operands, word)})`;
    }
    case "not":
      return sql`(NOT ${compileFilter(sql, filter.operand, now)})`;
    case "status":
      return STATUS[filter.value](sql, now);
    default:
      return compileComparison(sql, filter);
  }
}

type PlainComparison = Exclude<Comparison, { node: "status" }>;

function compileComparison(sql: Sql, comparison: PlainComparison): Fragment {
  const { node } = comparison;
  switch (node) {
    case "uuid":
      return compareIds(sql, comparison.operator, comparison.value);
    case "string":
      return compareField(sql, comparison.field, comparison.operator, comparison.value);
    case "prefix":
      return sql`starts_with(${sql(comparison.field)}, ${comparison.value})`;
    case "time":
      return compareTimes(sql, comparison.field, comparison.operator, comparison.value);
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
      return PRESENT[comparison.field]?.(sql) ?? sql`true`;
  }
}

/** Compares UUIDs by their bytes, like the list indexes (migration 0003); equality uses the primary key. */
export function compareIds(sql: Sql, operator: Operator, keyId: string): Fragment {
  if (operator === "=") return sql`(key_id = ${keyId})`;
  return sql`(uuid_send(key_id) ${OPERATORS[operator](sql)} uuid_send(${keyId}))`;
}

function compareField(sql: Sql, field: StringField, operator: Operator, value: string): Fragment {
  const condition = compareStrings(sql, sql`${sql(field)}`, operator, value);
  return field === "created_by" ? sql`(created_by IS NOT NULL AND ${condition})` : condition;
}

/** Orders by code point, independent of the collation of the column; equality uses an index. */
function compareStrings(sql: Sql, operand: Fragment, operator: Operator, value: string): Fragment {
  if (operator === "=") return sql`(${operand} = ${value})`;
  return sql`(${operand} COLLATE "C" ${OPERATORS[operator](sql)} ${value})`;
}

/** The value is sent as text: the driver would convert it to a `Date`, which has no microseconds. */
function compareTimes(sql: Sql, field: TimeField, operator: Operator, value: string): Fragment {
  const time = field === "expire_time" ? expireTime(sql) : sql`${sql(field)}`;
  return sql`(${sql(field)} IS NOT NULL AND ${time} ${OPERATORS[operator](sql)} ${value}::text::timestamptz)`;
}

function compareEntry(sql: Sql, key: string, operator: Operator, value: string): Fragment {
  if (operator === "=") return sql`(metadata @> ${sql.json({ [key]: value })})`;
  const entry = sql`(metadata ->> ${key})`;
  return sql`coalesce(${compareStrings(sql, entry, operator, value)}, false)`;
}

const OPERATORS: { readonly [O in Operator]: (sql: Sql) => Fragment } = {
  "=": (sql) => sql`=`,
  "<": (sql) => sql`<`,
  "<=": (sql) => sql`<=`,
  ">": (sql) => sql`>`,
  ">=": (sql) => sql`>=`,
};

/** The list indexes contain exactly this expression (migration 0003). */
const expireTime = (sql: Sql) => sql`coalesce(expire_time, 'infinity')`;

/**
 * Equals `statusAt` of the domain. The condition that `expire_time` is not null lets the planner use the index of the few keys that
 * expire.
 */
const STATUS: { readonly [S in KeyStatus]: (sql: Sql, now: Date) => Fragment } = {
  ACTIVE: (sql, now) => sql`(revoke_time IS NULL AND ${expireTime(sql)} > ${now} AND disable_time IS NULL)`,
  REVOKED: (sql) => sql`(revoke_time IS NOT NULL)`,
  EXPIRED: (sql, now) => sql`(revoke_time IS NULL AND expire_time IS NOT NULL AND ${expireTime(sql)} <= ${now})`,
  DISABLED: (sql, now) => sql`(revoke_time IS NULL AND ${expireTime(sql)} > ${now} AND disable_time IS NOT NULL)`,
};

/** The condition of `:*` for the fields that may be empty. */
const PRESENT: { readonly [F in FieldName]?: (sql: Sql) => Fragment } = {
  scopes: (sql) => sql`(cardinality(scopes) > 0)`,
  metadata: (sql) => sql`(metadata <> '{}')`,
  expire_time: (sql) => sql`(expire_time IS NOT NULL)`,
  last_used_time: (sql) => sql`(last_used_time IS NOT NULL)`,
  rotate_time: (sql) => sql`(rotate_time IS NOT NULL)`,
  revoke_time: (sql) => sql`(revoke_time IS NOT NULL)`,
  disable_time: (sql) => sql`(disable_time IS NOT NULL)`,
  hint: (sql) => sql`(hint <> '')`,
  created_by: (sql) => sql`(created_by IS NOT NULL)`,
  adopted: (sql) => sql`(adopt_time IS NOT NULL)`,
  hash_algorithm: (sql) => sql`(hash_algorithm IS NOT NULL)`,
  revocation_reason: (sql) =>
    sql`(revocation_reason IS NOT NULL AND revocation_reason <> 'REVOCATION_REASON_UNSPECIFIED')`,
};
