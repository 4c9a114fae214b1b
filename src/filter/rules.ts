import { UUID } from "../domain/key.ts";
import type {
  IntegerComparison,
  PrefixComparison,
  PresenceComparison,
  StringComparison,
  TimeComparison,
  UuidComparison,
} from "./expression.ts";
import { type Comparator, ORDERED, type Rule } from "./fields.ts";
import { parseTimestamp } from "./timestamp.ts";

const EQUALITY: readonly Comparator[] = ["=", "!=", ":"];
const HAS: readonly Comparator[] = [":"];

/** Fits into the `bigint` of PostgreSQL. */
const INTEGER = /^\d{1,18}$/;

export function stringRule<F extends string>(field: F): Rule<StringComparison<F> | PresenceComparison<F>> {
  return {
    ...partOf(field, ORDERED),
    values: "a string",
    compare: (operator, value) => ({ node: "string", field, operator, value }),
  };
}

/** Returns the rule of a string in which a trailing star is a wildcard. */
export function prefixRule<F extends string>(
  field: F,
): Rule<StringComparison<F> | PrefixComparison<F> | PresenceComparison<F>> {
  return { ...stringRule(field), prefix: (value) => ({ node: "prefix", field, value }) };
}

export function uuidRule<F extends string>(field: F): Rule<UuidComparison<F> | PresenceComparison<F>> {
  return {
    ...partOf(field, ORDERED),
    values: "a UUID",
    compare: (operator, text) =>
      UUID.test(text) ? { node: "uuid", field, operator, value: text.toLowerCase() } : undefined,
  };
}

export function integerRule<F extends string>(field: F): Rule<IntegerComparison<F> | PresenceComparison<F>> {
  return {
    ...partOf(field, ORDERED),
    values: "an integer of at most 18 digits, without a sign",
    compare: (operator, text) =>
      INTEGER.test(text) ? { node: "integer", field, operator, value: BigInt(text) } : undefined,
  };
}

export function timeRule<F extends string>(field: F): Rule<TimeComparison<F> | PresenceComparison<F>> {
  return {
    ...partOf(field, ORDERED),
    values: 'an RFC 3339 time such as 2026-01-31T12:00:00Z, or now() + "30d"',
    takesNow: true,
    compare: (operator, text) => {
      const value = parseTimestamp(text);
      return value === undefined ? undefined : { node: "time", field, operator, value };
    },
  };
}

/** `prefix` comes before each value in the API; it may be omitted, as in options of the command, such as `active`. */
export function enumRule<F extends string, V extends string, C>(
  field: F,
  prefix: string,
  values: readonly V[],
  equal: (value: V) => C,
): Rule<C | PresenceComparison<F>> {
  const nameOf = (value: V) => prefix + value.toUpperCase();
  return {
    ...partOf(field, EQUALITY),
    values: `one of ${values.map(nameOf).join(", ")}`,
    compare: (_, text) => {
      const wanted = text.toUpperCase();
      const value = values.find((candidate) => [wanted, prefix + wanted].includes(nameOf(candidate)));
      return value === undefined ? undefined : equal(value);
    },
  };
}

export function booleanRule<F extends string, C>(
  field: F,
  equal: (value: boolean) => C,
): Rule<C | PresenceComparison<F>> {
  return {
    ...partOf(field, EQUALITY),
    values: "true or false",
    compare: (_, text) => (/^(?:true|false)$/.test(text) ? equal(text === "true") : undefined),
  };
}

/** Returns the rule of a list or map, which supports `:` only. `values` describes what it may contain. */
export function listRule<F extends string, C>(
  field: F,
  values: string,
  contains: (value: string) => C,
): Rule<C | PresenceComparison<F>> {
  return { ...partOf(field, HAS), values, compare: (_, value) => contains(value) };
}

/** The part of a rule that does not depend on the type of the field. */
function partOf<F extends string>(field: F, comparators: readonly Comparator[]) {
  return { comparators, present: { node: "present", field } } as const;
}
