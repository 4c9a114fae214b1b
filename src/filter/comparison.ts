import { suggestion } from "../lib/nearest-name.ts";
import type { Cursor } from "./cursor.ts";
import type { Expression, Operator } from "./expression.ts";
import { COMPARATORS, type Comparator, type Fields, type Rule } from "./fields.ts";
import { isAnything, type Literal, NAME, plainText, prefixOf, takeName, takeValue } from "./literal.ts";
import { takeRelativeTime } from "./relative-time.ts";

const COMPARATOR = /[<>!]=|[<>=:]/y;
/** What may follow a value; empty at the end. */
const VALUE_ENDS = /^[ \t\r\n)]?$/;
const KEYWORD = /^(?:AND|OR|NOT)$/;
const KEYWORD_IN_ANY_CASE = /^(?:and|or|not)$/i;

const NO_FUNCTIONS = "functions are not supported, except now() as a time";

/** What a filter is parsed from. */
export interface Source<C> {
  readonly cursor: Cursor;
  readonly fields: Fields<C>;
  readonly now: () => number;
}

/** Parses `field comparator value`: a complete "restriction" of the grammar. */
export function takeComparison<C>(source: Source<C>): Expression<C> {
  const { cursor } = source;
  const path = takePath(source);
  cursor.skipSpace();
  const { offset } = cursor;
  const comparator = takeComparator(source, path);
  const rule = findField(source, path);
  if (!rule.comparators.includes(comparator)) {
    throw cursor.error(
      `unsupported operator "${comparator}"`,
      `${path.field} supports ${rule.comparators.join(" ")}`,
      offset,
    );
  }
  cursor.skipSpace();
  return compare(source, path, rule, comparator, takeArgument(source, rule));
}

interface Path {
  readonly offset: number;
  readonly field: string;
  readonly key: string | null;
}

function takePath({ cursor, fields }: Source<unknown>): Path {
  const { offset } = cursor;
  const expected = expectedOf(fields);
  const field = cursor.take(NAME);
  if (field === "") throw cursor.unexpected(expected);
  if (KEYWORD.test(field)) throw cursor.error(`unexpected "${field}"`, expected, offset);
  const key = cursor.takeOne(".") ? takeKey(cursor, fields) : null;
  if (cursor.peek() === ".") throw cursor.unexpected("a map key that contains a dot must be quoted");
  if (cursor.peek() === "(") throw cursor.unexpected(NO_FUNCTIONS);
  return { offset, field, key };
}

function takeKey(cursor: Cursor, fields: Fields<unknown>): string {
  const { offset } = cursor;
  const name = takeName(cursor);
  if (name === null) throw cursor.unexpected("expected a map key");
  const key = plainText(name);
  if (key === null) throw cursor.error("unexpected wildcard in a map key", wildcardsOf(fields), offset);
  return key;
}

/**
 * Without an operator the word would be a value to search in all fields. AIP-160 lets a service choose the fields; Keyhold supports none, so
 * the word must be rejected, not ignored.
 */
function takeComparator({ cursor, fields }: Source<unknown>, { offset, field }: Path): Comparator {
  const comparator = COMPARATORS.get(cursor.take(COMPARATOR));
  if (comparator !== undefined) return comparator;
  if (fields.rulesByName.has(field)) throw cursor.unexpected("expected an operator such as =");
  const hint = KEYWORD_IN_ANY_CASE.test(field) ? "write AND, OR and NOT in upper case" : expectedOf(fields);
  throw cursor.error("value without a field", hint, offset);
}

function findField<C>({ cursor, fields }: Source<C>, { offset, field, key }: Path): Rule<C> {
  const rule = fields.rulesByName.get(field);
  if (rule === undefined) {
    const names = `${fields.resource} has ${fields.names.join(", ")}${suggestion(field, fields.names)}`;
    throw cursor.error("unknown field", names, offset);
  }
  if (key === null) return rule;
  if (rule.entry === undefined) throw cursor.error("unknown field", `${field} has no entries`, offset);
  return rule.entry(key);
}

function takeArgument({ cursor, now }: Source<unknown>, { takesNow = false }: Rule<unknown>): Literal {
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
function compare<C>(
  source: Source<C>,
  { field }: Path,
  rule: Rule<C>,
  comparator: Comparator,
  value: Literal,
): Expression<C> {
  switch (comparator) {
    case ":":
      if (isAnything(value)) return rule.present;
      // In other services it searches within the text, so an empty list would mislead.
      if (rule.prefix !== undefined && plainText(value) !== null) {
        const hint = `use = to compare the whole text, or end the value with *, as in ${field}:"ab*"`;
        throw source.cursor.error("invalid value", hint, value.offset);
      }
      return compareWith(source, rule, "=", value);
    case "!=":
      return { node: "not", operand: compareWith(source, rule, "=", value) };
    default:
      return compareWith(source, rule, comparator, value);
  }
}

function compareWith<C>(source: Source<C>, rule: Rule<C>, operator: Operator, value: Literal): C {
  const text = plainText(value);
  if (text === null) return comparePrefix(source, rule, operator, value);
  const comparison = rule.compare(operator, text);
  if (comparison !== undefined) return comparison;
  throw source.cursor.error("invalid value", `expected ${rule.values}`, value.offset);
}

function comparePrefix<C>({ cursor, fields }: Source<C>, rule: Rule<C>, operator: Operator, value: Literal): C {
  const prefix = prefixOf(value);
  if (operator === "=" && rule.prefix !== undefined && prefix !== null) return rule.prefix(prefix);
  throw cursor.error("unexpected wildcard in the value", wildcardsOf(fields), value.offset);
}

function expectedOf({ example }: Fields<unknown>): string {
  return `expected a comparison such as ${example}`;
}

function wildcardsOf({ wildcardField }: Fields<unknown>): string {
  return `a wildcard is allowed only at the end of ${wildcardField} value, or alone after ":"; write "\\*" for a literal *`;
}
