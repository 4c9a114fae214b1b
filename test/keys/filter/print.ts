import { TTL_BOUNDS } from "../../../src/domain/duration.ts";
import type { Expression, Operator } from "../../../src/filter/expression.ts";
import type { KeyComparison, KeyFilter } from "../../../src/keys/filter.ts";
import { NOW } from "./now.ts";

/** Styles of printing the same filter. */
export interface Style {
  readonly camelCase: boolean;
  readonly quote: '"' | "'";
  /** Without quotes where possible. */
  readonly bare: boolean;
  readonly not: "NOT " | "-";
  /** `NOT a = b` for `a != b`. */
  readonly spellNot: boolean;
  /** `:` where it is equivalent to `=`. */
  readonly has: boolean;
  readonly and: " AND " | " ";
  readonly space: string;
  readonly parentheses: boolean;
  /** Times relative to `NOW` where possible. */
  readonly relative: boolean;
}

export const NORMAL: Style = {
  camelCase: false,
  quote: '"',
  bare: false,
  not: "NOT ",
  spellNot: false,
  has: false,
  and: " AND ",
  space: " ",
  parentheses: false,
  relative: false,
};

/** Prints a filter; parsing the result returns the same filter. */
export function printFilter(filter: KeyFilter, style: Style = NORMAL): string {
  return filter.node === "all" ? "" : print(filter, style);
}

function print(expression: Expression<KeyComparison>, style: Style): string {
  const text = printBare(expression, style);
  return style.parentheses && expression.node !== "not" ? `(${style.space}${text}${style.space})` : text;
}

function printBare(expression: Expression<KeyComparison>, style: Style): string {
  switch (expression.node) {
    case "and":
      return expression.operands.map((operand) => printOperand(operand, style)).join(style.and);
    case "or":
      return expression.operands.map((operand) => printOperand(operand, style)).join(` OR${style.space || " "}`);
    case "not":
      return printNegation(expression.operand, style);
    default:
      return printComparison(expression, "=", style);
  }
}

function printOperand(operand: Expression<KeyComparison>, style: Style): string {
  const text = print(operand, style);
  const wrap = !style.parentheses && (operand.node === "and" || operand.node === "or");
  return wrap ? `(${text})` : text;
}

function printNegation(operand: Expression<KeyComparison>, style: Style): string {
  const equality = isEquality(operand);
  if (equality !== null && !style.spellNot) return printComparison(equality, "!=", style);
  const text = print(operand, style);
  const wrap = !style.parentheses && (operand.node === "and" || operand.node === "or");
  return style.not + (wrap || operand.node === "not" ? `(${text})` : text);
}

/** Comparisons that `!=` can negate. */
function isEquality(expression: Expression<KeyComparison>): KeyComparison | null {
  switch (expression.node) {
    case "prefix":
    case "kind":
    case "status":
    case "reason":
    case "hash_algorithm":
    case "adopted":
      return expression;
    case "uuid":
    case "string":
    case "time":
    case "entry":
      return expression.operator === "=" ? expression : null;
    default:
      return null;
  }
}

function printComparison(comparison: KeyComparison, equal: "=" | "!=", style: Style): string {
  const write = (path: string, operator: Operator, value: string) => {
    // A name takes `:` only with a star.
    const has = style.has && (path !== "name" || comparison.node === "prefix");
    const sign = operator !== "=" ? operator : equal === "=" && has ? ":" : equal;
    return `${camel(path, style)}${style.space}${sign}${style.space}${value}`;
  };
  switch (comparison.node) {
    case "time":
      return write(comparison.field, comparison.operator, time(comparison.value, style));
    case "uuid":
    case "string":
      return write(comparison.field, comparison.operator, literal(comparison.value, style));
    case "prefix":
      return write(comparison.field, "=", literal(comparison.value, style, "*"));
    case "kind":
      return write("kind", "=", literal(`KEY_KIND_${comparison.value.toUpperCase()}`, style));
    case "status":
      return write("status", "=", literal(`KEY_STATUS_${comparison.value}`, style));
    case "reason":
      return write("revocation_reason", "=", literal(`REVOCATION_REASON_${comparison.value}`, style));
    case "hash_algorithm":
      return write("hash_algorithm", "=", literal(`HASH_ALGORITHM_${comparison.value}`, style));
    case "adopted":
      return write("adopted", "=", literal(`${comparison.value}`, style));
    case "scope":
      return `scopes:${style.space}${literal(comparison.value, style)}`;
    case "entry":
      return write(`metadata.${key(comparison.key, style)}`, comparison.operator, literal(comparison.value, style));
    case "key":
      return style.has ? `metadata:${literal(comparison.key, style)}` : `metadata.${key(comparison.key, style)}:*`;
    case "present":
      return `${camel(comparison.field, style)}:*`;
  }
}

function time(value: string, style: Style): string {
  const offset = Date.parse(value) - NOW;
  const isExact = value.endsWith("000Z") && Math.abs(offset) <= TTL_BOUNDS.max;
  if (!style.relative || !isExact) return literal(value, style);
  if (offset === 0 && style.bare) return `now(${style.space})`;
  const sign = offset < 0 ? "-" : "+";
  return `now(${style.space})${style.space}${sign}${style.space}${literal(`${Math.abs(offset) / 1000}s`, style)}`;
}

function literal(text: string, style: Style, wildcard = ""): string {
  const safe = /^[\w:./@+-]+$/.test(text) && !/^(?:AND|OR|NOT)$/.test(text + wildcard);
  return style.bare && safe ? text + wildcard : quoted(text, style, wildcard);
}

function key(text: string, style: Style): string {
  return style.bare && /^[\w/@+-]+$/.test(text) ? text : quoted(text, style);
}

function quoted(text: string, { quote }: Style, wildcard = ""): string {
  const escaped = text.replace(quote === '"' ? /["\\*]/g : /['\\*]/g, "\\$&");
  return quote + escaped + wildcard + quote;
}

function camel(path: string, { camelCase }: Style): string {
  if (!camelCase || path.startsWith("metadata")) return path;
  return path.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
