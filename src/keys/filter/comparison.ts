import type { KeyKind } from "../../domain/key.ts";
import { suggestion } from "../../lib/nearest-name.ts";
import type { Cursor } from "./cursor.ts";
import { COMPARATORS, type Comparator, FIELD_NAMES, RULES_BY_NAME, type Rule } from "./fields.ts";
import type { Comparison, Expression, Operator } from "./filter.ts";
import { isAnything, type Literal, NAME, plainText, prefixOf, takeName, takeValue } from "./literal.ts";
import { takeRelativeTime } from "./relative-time.ts";

const COMPARATOR = /[<>!]=|[<>=:]/y;
/** What may follow a value; empty at the end. */
const VALUE_ENDS = /^[ \t\r\n)]?$/;
const KEYWORD = /^(?:AND|OR|NOT)$/;
const KEYWORD_IN_ANY_CASE = /^(?:and|or|not)$/i;

const EXPECTED = 'expected a comparison such as actor_id="a"';
const NO_FUNCTIONS = "functions are not supported, except now() as a time";
const SEARCH = 'use = to compare the whole text, or end the value with *, as in name:"ab*"';
const WILDCARDS =
  'a wildcard is allowed only at the end of a name value, or alone after ":"; write "\\*" for a literal *';

/** Parses `field comparator value`: a complete "restriction" of the grammar. */
export function takeComparison(cursor: Cursor, kind: KeyKind | null, now: () => number): Expression {
  const path = takePath(cursor);
  cursor.skipSpace();
  const { offset } = cursor;
  const comparator = takeComparator(cursor, path);
  const rule = findField(cursor, path, kind);
  if (!rule.comparators.includes(comparator)) {
    throw cursor.error(
      `unsupported operator "${comparator}"`,
      `${path.field} supports ${rule.comparators.join(" ")}`,
      offset,
    );
  }
  cursor.skipSpace();
  return compare(cursor, rule, comparator, takeArgument(cursor, rule, now));
}

interface Path {
  readonly offset: number;
  readonly field: string;
  readonly key: string | null;
}

function takePath(cursor: Cursor): Path {
  const { offset } = cursor;
  const field = cursor.take(NAME);
  if (field === "") throw cursor.unexpected(EXPECTED);
  if (KEYWORD.test(field)) throw cursor.error(`unexpected "${field}"`, EXPECTED, offset);
  const key = cursor.takeOne(".") ? takeKey(cursor) : null;
  if (cursor.peek() === ".") throw cursor.unexpected("a map key that contains a dot must be quoted");
  if (cursor.peek() === "(") throw cursor.unexpected(NO_FUNCTIONS);
  return { offset, field, key };
}

function takeKey(cursor: Cursor): string {
  const { offset } = cursor;
  const name = takeName(cursor);
  if (name === null) throw cursor.unexpected("expected a map key");
  const key = plainText(name);
  if (key === null) throw cursor.error("unexpected wildcard in a map key", WILDCARDS, offset);
  return key;
}

/**
 * Without an operator the word would be a value to search in all fields. AIP-160 lets a service choose the fields; Keyhold supports none, so
 * the word must be rejected, not ignored.
 */
function takeComparator(cursor: Cursor, { offset, field }: Path): Comparator {
  const comparator = COMPARATORS.get(cursor.take(COMPARATOR));
  if (comparator !== undefined) return comparator;
  if (RULES_BY_NAME.has(field)) throw cursor.unexpected("expected an operator such as =");
  const hint = KEYWORD_IN_ANY_CASE.test(field) ? "write AND, OR and NOT in upper case" : EXPECTED;
  throw cursor.error("value without a field", hint, offset);
}

function findField(cursor: Cursor, { offset, field, key }: Path, kind: KeyKind | null): Rule {
  const rule = RULES_BY_NAME.get(field);
  if (rule === undefined) {
    const fields = `${kind === null ? "a" : `an ${kind}`} key has ${FIELD_NAMES.join(", ")}${suggestion(field, FIELD_NAMES)}`;
    throw cursor.error("unknown field", fields, offset);
  }
  if (key === null) return rule;
  if (rule.entry === undefined) throw cursor.error("unknown field", `${field} has no entries`, offset);
  return rule.entry(key);
}

function takeArgument(cursor: Cursor, { takesNow = false }: Rule, now: () => number): Literal {
  const value = (takesNow ? takeRelativeTime(cursor, now) : null) ?? takeValue(cursor);
  if (value === null) throw cursor.unexpected("expected a value, such as a quoted string");
  const text = plainText(value);
  if (!value.quoted && text !== null && KEYWORD.test(text)) {
    throw cursor.error(`unexpected "${text}"`, "expected a value; if this is the value, quote it", value.offset);
  }
  if (cursor.peek() === "(") throw cursor.unexpected(NO_FUNCTIONS);
  if (!VALUE_ENDS.test(cursor.peek()))
    throw cursor.unexpected("expected a space; quote a value that contains this character");
  return value;
}

/** Returns the comparison: `:` with a value is equality, or membership in a list; `!=` negates `=`. */
function compare(cursor: Cursor, rule: Rule, comparator: Comparator, value: Literal): Expression {
  switch (comparator) {
    case ":":
      if (isAnything(value)) return rule.present;
      // In other services it searches within the text, so an empty list would mislead.
      if (rule.prefix !== undefined && plainText(value) !== null)
        throw cursor.error("invalid value", SEARCH, value.offset);
      return compareWith(cursor, rule, "=", value);
    case "!=":
      return { node: "not", operand: compareWith(cursor, rule, "=", value) };
    default:
      return compareWith(cursor, rule, comparator, value);
  }
}

function compareWith(cursor: Cursor, rule: Rule, operator: Operator, value: Literal): Comparison {
  const text = plainText(value);
  if (text === null) return comparePrefix(cursor, rule, operator, value);
  const comparison = rule.compare(operator, text);
  if (comparison !== undefined) return comparison;
  throw cursor.error("invalid value", `expected ${rule.values}`, value.offset);
}

function comparePrefix(cursor: Cursor, rule: Rule, operator: Operator, value: Literal): Comparison {
  const prefix = prefixOf(value);
  if (operator === "=" && rule.prefix !== undefined && prefix !== null) return rule.prefix(prefix);
  throw cursor.error("unexpected wildcard in the value", WILDCARDS, value.offset);
}
