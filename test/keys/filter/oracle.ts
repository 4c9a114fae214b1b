import type { KeyKind, KeyStatus, RevocationReason } from "../../../src/domain/key.ts";
import type { HashAlgorithm } from "../../../src/domain/raw-key-hash.ts";
import type { Operator } from "../../../src/filter/expression.ts";
import type { KeyComparison, KeyField, KeyFilter } from "../../../src/keys/filter.ts";

/** The filterable fields of a key. Times have the form of `Filter`, which sorts as text. */
export interface Row {
  readonly key_id: string;
  readonly name: string;
  readonly actor_id: string;
  readonly scopes: readonly string[];
  readonly metadata: ReadonlyMap<string, string>;
  readonly create_time: string;
  readonly update_time: string;
  readonly expire_time: string | null;
  readonly last_used_time: string | null;
  readonly kind: KeyKind;
  readonly hint: string;
  readonly created_by: string | null;
  readonly revoked_by: string | null;
  readonly disabled_by: string | null;
  readonly rotate_time: string | null;
  readonly disable_time: string | null;
  readonly revoke_time: string | null;
  readonly revocation_reason: RevocationReason | null;
  readonly hash_algorithm: HashAlgorithm | null;
  /** Null for a key that was imported by its raw key, or issued. */
  readonly adopted: boolean | null;
}

/** Returns whether the row matches, by AIP-160 and docs/api.md. Shares no code with the compiler to SQL. */
export function matches(filter: KeyFilter, row: Row, now: string): boolean {
  switch (filter.node) {
    case "all":
      return true;
    case "and":
      return filter.operands.every((operand) => matches(operand, row, now));
    case "or":
      return filter.operands.some((operand) => matches(operand, row, now));
    case "not":
      return !matches(filter.operand, row, now);
    default:
      return holds(filter, row, now);
  }
}

function holds(comparison: KeyComparison, row: Row, now: string): boolean {
  switch (comparison.node) {
    case "uuid":
    case "string":
    case "time":
      return compares(row[comparison.field], comparison.operator, comparison.value);
    case "entry":
      return compares(row.metadata.get(comparison.key) ?? null, comparison.operator, comparison.value);
    case "prefix":
      return row[comparison.field].startsWith(comparison.value);
    case "status":
      return statusOf(row, now) === comparison.value;
    case "kind":
      return row.kind === comparison.value;
    case "reason":
      return row.revocation_reason === comparison.value;
    case "hash_algorithm":
      return row.hash_algorithm === comparison.value;
    case "adopted":
      return row.adopted === comparison.value;
    case "scope":
      return row.scopes.includes(comparison.value);
    case "key":
      return row.metadata.has(comparison.key);
    case "present":
      return isPresent(row, comparison.field);
  }
}

function compares(left: string | null, operator: Operator, right: string): boolean {
  if (left === null) return false;
  const order = compareCodePoints(left, right);
  switch (operator) {
    case "=":
      return order === 0;
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

/** JavaScript's `<` compares UTF-16 units, which orders 😀 before U+E000. */
function compareCodePoints(left: string, right: string): number {
  const [a, b] = [[...left], [...right]].map((characters) => characters.map((c) => c.codePointAt(0) ?? 0));
  for (const [index, codePoint] of (a ?? []).entries()) {
    const other = b?.[index];
    if (other === undefined) return 1;
    if (codePoint !== other) return codePoint - other;
  }
  return left.length === right.length ? 0 : -1;
}

function statusOf({ revoke_time, expire_time, disable_time }: Row, now: string): KeyStatus {
  if (revoke_time !== null) return "REVOKED";
  if (expire_time !== null && expire_time <= now) return "EXPIRED";
  return disable_time === null ? "ACTIVE" : "DISABLED";
}

function isPresent(row: Row, field: KeyField): boolean {
  switch (field) {
    case "scopes":
      return row.scopes.length > 0;
    case "metadata":
      return row.metadata.size > 0;
    case "hint":
      return row.hint !== "";
    case "expire_time":
    case "last_used_time":
    case "rotate_time":
    case "revoke_time":
    case "disable_time":
    case "created_by":
    case "revoked_by":
    case "disabled_by":
    case "hash_algorithm":
      return row[field] !== null;
    case "adopted":
      return row.adopted === true;
    case "revocation_reason":
      return row.revocation_reason !== null && row.revocation_reason !== "UNSPECIFIED";
    default:
      return true;
  }
}
