import type { KeyKind, KeyStatus, RevocationReason } from "../../domain/key.ts";
import type { HashAlgorithm } from "../../domain/raw-key-hash.ts";

/**
 * A validated list filter (AIP-160): fields exist and values have the type of their field. Logic is two-valued: a comparison with an absent
 * value is false, so its negation is true. The empty filter is never part of an expression.
 */
export type Filter = { readonly node: "all" } | Expression;

export type Expression =
  /** Two or more operands. */
  | { readonly node: "and" | "or"; readonly operands: readonly Expression[] }
  | { readonly node: "not"; readonly operand: Expression }
  | Comparison;

/** There is no `!=`: `a != b` is NOT (`a = b`), which is true if `a` is absent. */
export type Operator = "=" | "<" | "<=" | ">" | ">=";

export type StringField = "name" | "actor_id" | "hint" | "created_by";
export type TimeField =
  | "create_time"
  | "update_time"
  | "expire_time"
  | "last_used_time"
  | "rotate_time"
  | "revoke_time"
  | "disable_time";
type EnumField = "kind" | "status" | "revocation_reason" | "hash_algorithm";
export type FieldName = "key_id" | StringField | EnumField | "adopted" | "scopes" | "metadata" | TimeField;

export type Comparison =
  /** `value` is a UUID in lower case; UUIDs are ordered by their bytes. */
  | { readonly node: "uuid"; readonly field: "key_id"; readonly operator: Operator; readonly value: string }
  /** Strings are ordered by code point. */
  | { readonly node: "string"; readonly field: StringField; readonly operator: Operator; readonly value: string }
  /** The string starts with `value`. */
  | { readonly node: "prefix"; readonly field: "name"; readonly value: string }
  /** `value` is in UTC with six digits of fraction, as `2026-01-31T12:00:00.000000Z`. */
  | { readonly node: "time"; readonly field: TimeField; readonly operator: Operator; readonly value: string }
  | { readonly node: "kind"; readonly value: KeyKind }
  | { readonly node: "status"; readonly value: KeyStatus }
  | { readonly node: "reason"; readonly value: RevocationReason }
  | { readonly node: "hash_algorithm"; readonly value: HashAlgorithm }
  /** Whether a key that was imported by its hash is adopted. Others have no value. */
  | { readonly node: "adopted"; readonly value: boolean }
  /** `value` is one of the scopes. */
  | { readonly node: "scope"; readonly value: string }
  /** The metadata entry `key` satisfies the comparison. */
  | { readonly node: "entry"; readonly key: string; readonly operator: Operator; readonly value: string }
  /** The metadata have the entry `key`. */
  | { readonly node: "key"; readonly key: string }
  /** The field differs from the default value of its type (AIP-160, "Has Operator"). */
  | { readonly node: "present"; readonly field: FieldName };
