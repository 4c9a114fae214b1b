/**
 * A validated filter (AIP-160) of a resource with the comparisons `C`: fields exist and values have the type of their field. Logic is
 * two-valued: a comparison with an absent value is false, so its negation is true. The empty filter is never part of an expression.
 */
export type Filter<C> = { readonly node: "all" } | Expression<C>;

export type Expression<C> =
  /** Two or more operands. */
  | { readonly node: "and" | "or"; readonly operands: readonly Expression<C>[] }
  | { readonly node: "not"; readonly operand: Expression<C> }
  | C;

/** There is no `!=`: `a != b` is NOT (`a = b`), which is true if `a` is absent. */
export type Operator = "=" | "<" | "<=" | ">" | ">=";

/** Compares a value of type `V` with the field `F`. */
interface Comparison<N extends string, F extends string, V> {
  readonly node: N;
  readonly field: F;
  readonly operator: Operator;
  readonly value: V;
}

/** `value` is in lower case; UUIDs are ordered by their bytes. */
export type UuidComparison<F extends string> = Comparison<"uuid", F, string>;

/** Strings are ordered by code point. */
export type StringComparison<F extends string> = Comparison<"string", F, string>;

/** `value` is in UTC with six digits of fraction, as `2026-01-31T12:00:00.000000Z`. */
export type TimeComparison<F extends string> = Comparison<"time", F, string>;

export type IntegerComparison<F extends string> = Comparison<"integer", F, bigint>;

/** The string starts with `value`. */
export interface PrefixComparison<F extends string> {
  readonly node: "prefix";
  readonly field: F;
  readonly value: string;
}

/** The field differs from the default value of its type (AIP-160, "Has Operator"). */
export interface PresenceComparison<F extends string> {
  readonly node: "present";
  readonly field: F;
}
