import type { KeyStatus, RevocationReason } from "../../domain/key.ts";

/**
 * A list filter (AIP-160), checked: fields exist and values have the type of their field. Its logic has two values. A
 * comparison with an absent value is false, so its negation is true.
 */
export type Filter = MatchAll | Expression;

/** The filter that an empty text means. It stands alone, never inside an expression. */
export interface MatchAll {
  readonly node: "all";
}

export type Expression = Junction | Negation | Comparison;

/** Two operands or more. */
export interface Junction {
  readonly node: "and" | "or";
  readonly operands: readonly Expression[];
}

export interface Negation {
  readonly node: "not";
  readonly operand: Expression;
}

/** There is no `!=`: `a != b` is the negation of `a = b`, which makes it true where `a` is absent. */
export type Operator = "=" | "<" | "<=" | ">" | ">=";

export type StringField = "name" | "actor_id";
export type TimeField = "create_time" | "update_time" | "expire_time" | "last_used_time";
export type FieldName = "key_id" | StringField | "status" | "scopes" | "metadata" | TimeField | "revocation_reason";

export type Comparison =
  /** `value` is a UUID in lower case; UUIDs are in the order of their bytes. */
  | { readonly node: "uuid"; readonly field: "key_id"; readonly operator: Operator; readonly value: string }
  /** Strings are in the order of their code points. */
  | { readonly node: "string"; readonly field: StringField; readonly operator: Operator; readonly value: string }
  /** The string begins with `value`. */
  | { readonly node: "prefix"; readonly field: "name"; readonly value: string }
  /** `value` is in UTC with six digits of fraction, as `2026-01-31T12:00:00.000000Z`. */
  | { readonly node: "time"; readonly field: TimeField; readonly operator: Operator; readonly value: string }
  | { readonly node: "status"; readonly value: KeyStatus }
  | { readonly node: "reason"; readonly value: RevocationReason }
  /** `value` is one of the scopes. */
  | { readonly node: "scope"; readonly value: string }
  /** The metadata have an entry `key` that compares so. */
  | { readonly node: "entry"; readonly key: string; readonly operator: Operator; readonly value: string }
  /** The metadata have an entry `key`. */
  | { readonly node: "key"; readonly key: string }
  /** The field has a value that is not the default one of its type (AIP-160, "Has Operator"). */
  | { readonly node: "present"; readonly field: FieldName };
