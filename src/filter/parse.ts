import { type Source, takeComparison } from "./comparison.ts";
import { Cursor } from "./cursor.ts";
import type { Expression, Filter } from "./expression.ts";
import type { Fields } from "./fields.ts";

const MAX_CHARACTERS = 2000;
const MAX_COMPARISONS = 50;
const MAX_DEPTH = 20;

const KEYWORD_ENDS = "(?=[ \\t\\r\\n()]|$)";
const AND = new RegExp(`AND${KEYWORD_ENDS}`, "y");
const OR = new RegExp(`OR${KEYWORD_ENDS}`, "y");
const NOT = new RegExp(`NOT${KEYWORD_ENDS}`, "y");

const UNSTORABLE = /[\0\p{Cs}]/u;

interface State<C> extends Source<C> {
  comparisons: number;
  depth: number;
}

/**
 * Parses an AIP-160 list filter (grammar: google.aip.dev/assets/misc/ebnf-filtering.txt) over the fields of a resource, in snake_case
 * or lowerCamelCase. An empty or blank filter matches all. Details:
 *
 * - `OR` binds tighter than `AND` (AIP-160): `a AND b OR c` is `a AND (b OR c)`. A space between comparisons means `AND`.
 * - A comparison with an absent value is false; `!=` is the negation of `=`, hence true. `field:*` tests for presence.
 * - Lists support `:` only, for membership. `map:key` and `map.key:*` test for a key; on other fields `:` is `=`.
 * - A star is a wildcard at the end of a value after `=`, `!=` or `:`, if the field has `Rule.prefix`, and rejected elsewhere. In quotes, `\*` is
 *   a literal star; a backslash also escapes a quote or itself.
 * - An unquoted value may contain dots and colons (times, scopes).
 * - A time is an RFC 3339 time, `now()`, or `now()` plus or minus a duration (`now() + "30d"`).
 * - A value without a field, other functions, values in parentheses, and double negation without parentheses are rejected.
 *
 * Limits: 2000 characters, 50 comparisons, 20 nested parentheses. Throws `INVALID_ARGUMENT` on the field `filter`, with the position and what
 * was expected.
 *
 * `now` returns the value of `now()` in milliseconds, and is called only if the filter has one.
 */
export function parseFilter<C>(text: string, fields: Fields<C>, now: () => number): Filter<C> {
  const cursor = new Cursor(text);
  checkText(cursor);
  cursor.skipSpace();
  if (cursor.atEnd) return { node: "all" };
  const expression = takeExpression({ cursor, fields, now, comparisons: 0, depth: 0 });
  if (!cursor.atEnd) throw cursor.unexpected("unmatched closing parenthesis");
  return expression;
}

/** Rejects NUL and lone surrogates, which PostgreSQL cannot store. */
function checkText(cursor: Cursor): void {
  const { text } = cursor;
  const allowed = [...text.slice(0, 2 * MAX_CHARACTERS)].slice(0, MAX_CHARACTERS).join("");
  if (allowed.length < text.length) {
    throw cursor.error("too long", `at most ${MAX_CHARACTERS} characters`, allowed.length);
  }
  const wrong = text.search(UNSTORABLE);
  if (wrong !== -1) throw cursor.error("invalid character", "NUL and lone surrogates are not allowed", wrong);
}

/** `factor {[AND] factor}`: "expression" and "sequence" of the grammar, which both mean AND here. */
function takeExpression<C>(state: State<C>): Expression<C> {
  const operands: [Expression<C>, ...Expression<C>[]] = [takeFactor(state)];
  while (takeAnd(state.cursor)) operands.push(takeFactor(state));
  return junction("and", operands);
}

/** Returns whether another factor must follow. */
function takeAnd(cursor: Cursor): boolean {
  cursor.skipSpace();
  if (cursor.atEnd || cursor.peek() === ")") return false;
  if (cursor.take(AND) !== "") cursor.skipSpace();
  return true;
}

/** `term {OR term}` */
function takeFactor<C>(state: State<C>): Expression<C> {
  const operands: [Expression<C>, ...Expression<C>[]] = [takeTerm(state)];
  while (takeOr(state.cursor)) operands.push(takeTerm(state));
  return junction("or", operands);
}

function takeOr(cursor: Cursor): boolean {
  cursor.skipSpace();
  if (cursor.take(OR) === "") return false;
  cursor.skipSpace();
  return true;
}

/** `[NOT | -] (comparison | "(" expression ")")` */
function takeTerm<C>(state: State<C>): Expression<C> {
  return takeNegation(state.cursor) ? { node: "not", operand: takeSimple(state) } : takeSimple(state);
}

function takeNegation(cursor: Cursor): boolean {
  if (cursor.take(NOT) === "") return cursor.takeOne("-");
  cursor.skipSpace();
  return true;
}

function takeSimple<C>(state: State<C>): Expression<C> {
  if (state.cursor.peek() === "(") return takeComposite(state);
  if (state.comparisons === MAX_COMPARISONS) {
    throw state.cursor.error("too many comparisons", `at most ${MAX_COMPARISONS}`);
  }
  state.comparisons++;
  return takeComparison(state);
}

function takeComposite<C>(state: State<C>): Expression<C> {
  const { cursor } = state;
  if (state.depth === MAX_DEPTH) throw cursor.error("nested too deeply", `at most ${MAX_DEPTH} parentheses`);
  const { offset } = cursor;
  cursor.takeOne("(");
  cursor.skipSpace();
  state.depth++;
  const expression = takeExpression(state);
  state.depth--;
  if (!cursor.takeOne(")")) throw cursor.error('unclosed "("', 'expected ")" at the end', offset);
  return expression;
}

function junction<C>(node: "and" | "or", operands: readonly [Expression<C>, ...Expression<C>[]]): Expression<C> {
  return operands.length === 1 ? operands[0] : { node, operands };
}
