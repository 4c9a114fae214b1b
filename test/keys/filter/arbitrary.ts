import fc, { type Arbitrary } from "fast-check";
import type { Expression, Operator } from "../../../src/filter/expression.ts";
import type { KeyComparison, KeyFilter } from "../../../src/keys/filter.ts";
import { anyText } from "../../lib/any-text.ts";
import { printFilter, type Style } from "./print.ts";

/** Few values, so that filters match rows, including special cases of SQL, LIKE, JSON, the grammar and collation. */
export const STRINGS = [
  "a",
  "A",
  "aa",
  "ab",
  "b",
  "*",
  "a*",
  "\\",
  "a\\*",
  "%",
  "a_",
  "'",
  '"',
  "';--",
  "$1",
  "?",
  "null",
  "AND",
  " ",
  "a b",
  "\t\r\n",
  "é",
  "e\u0301",
  "\uFFFD",
  "\uE000",
  "😀",
  "a😀",
  "__proto__",
  "(",
  ")",
  "a:b.c",
];
export const UUIDS = [
  "00000000-0000-0000-0000-000000000000",
  "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d11",
  "a198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
];
/** Around `NOW`, some of them relative to it. */
export const TIMES = [
  "0001-01-01T00:00:00.000000Z",
  "1969-12-31T23:59:59.999999Z",
  "2025-11-02T12:00:00.000000Z",
  "2026-01-31T11:59:59.999999Z",
  "2026-01-31T12:00:00.000000Z",
  "2026-01-31T12:00:00.000001Z",
  "2026-01-31T12:00:00.001000Z",
  "2026-03-02T12:00:00.000000Z",
  "9999-12-31T23:59:59.999999Z",
];
export const REASONS = [
  "UNSPECIFIED",
  "KEY_COMPROMISE",
  "AFFILIATION_CHANGED",
  "SUPERSEDED",
  "PRIVILEGE_WITHDRAWN",
] as const;

/** Any string that PostgreSQL can store. */
const storableText = anyText.map((text) => text.toWellFormed().replaceAll("\0", ""));

export const someString = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...STRINGS) }, storableText);
/** A key of an entry, from few, so that some differ only in case. */
export const someKey = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom("a", "A", "", '"', "*", "__proto__") },
  someString,
);
export const someTime = fc.constantFrom(...TIMES);

const someOperator = fc.constantFrom<Operator>("=", "<", "<=", ">", ">=");
const literal = <T extends string>(...values: T[]) => fc.constantFrom(...values);

const TIME_FIELDS = [
  "create_time",
  "update_time",
  "expire_time",
  "last_used_time",
  "rotate_time",
  "revoke_time",
  "disable_time",
] as const;

const someComparison: Arbitrary<KeyComparison> = fc.oneof(
  fc.record({
    node: literal("uuid"),
    field: literal("key_id"),
    operator: someOperator,
    value: fc.constantFrom(...UUIDS),
  }),
  fc.record({
    node: literal("string"),
    field: literal("name", "actor_id", "hint", "created_by", "revoked_by", "disabled_by"),
    operator: someOperator,
    value: someString,
  }),
  fc.record({ node: literal("prefix"), field: literal("name"), value: fc.oneof(someString, fc.constant("")) }),
  fc.record({
    node: literal("time"),
    field: fc.constantFrom(...TIME_FIELDS),
    operator: someOperator,
    value: someTime,
  }),
  fc.record({ node: literal("status"), value: literal("ACTIVE", "REVOKED", "EXPIRED", "DISABLED") }),
  fc.record({ node: literal("kind"), value: literal("issued", "imported") }),
  fc.record({ node: literal("reason"), value: literal(...REASONS) }),
  fc.record({ node: literal("hash_algorithm"), value: literal("SHA256", "SHA512_256", "BCRYPT") }),
  fc.record({ node: literal("adopted"), value: fc.boolean() }),
  fc.record({ node: literal("scope"), value: someString }),
  fc.record({ node: literal("entry"), key: someKey, operator: someOperator, value: someString }),
  fc.record({ node: literal("key"), key: someKey }),
  fc.record({
    node: literal("present"),
    field: literal(
      "key_id",
      "name",
      "actor_id",
      "hint",
      "created_by",
      "revoked_by",
      "disabled_by",
      "kind",
      "status",
      "scopes",
      "metadata",
      ...TIME_FIELDS,
      "revocation_reason",
      "hash_algorithm",
      "adopted",
    ),
  }),
);

const { someExpression } = fc.letrec<{ someExpression: Expression<KeyComparison> }>((tie) => ({
  someExpression: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    someComparison,
    fc.record({
      node: literal("and", "or"),
      operands: fc.array(tie("someExpression"), { minLength: 2, maxLength: 3, size: "max" }),
    }),
    fc.record({ node: literal("not"), operand: tie("someExpression") }),
  ),
}));

/** Any filter within the limits. */
export const someFilter: Arbitrary<KeyFilter> = fc
  .oneof({ weight: 50, arbitrary: someExpression }, fc.constant<KeyFilter>({ node: "all" }))
  .filter((filter) => countComparisons(filter) <= 50 && printFilter(filter).length <= 700);

export const someStyle: Arbitrary<Style> = fc.record({
  camelCase: fc.boolean(),
  quote: literal('"', "'"),
  bare: fc.boolean(),
  not: literal("NOT ", "-"),
  spellNot: fc.boolean(),
  has: fc.boolean(),
  and: literal(" AND ", " "),
  space: literal("", " ", "\t\r\n "),
  parentheses: fc.boolean(),
  relative: fc.boolean(),
});

function countComparisons(filter: KeyFilter): number {
  if (filter.node === "not") return countComparisons(filter.operand);
  if (filter.node !== "and" && filter.node !== "or") return 1;
  return filter.operands.reduce((sum, operand) => sum + countComparisons(operand), 0);
}
