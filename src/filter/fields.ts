import type { Operator } from "./expression.ts";

/** A comparator of the language; `:` means "has" (AIP-160, "Has Operator"). */
export type Comparator = Operator | "!=" | ":";

export const ORDERED: readonly Comparator[] = ["=", "!=", "<", "<=", ">", ">=", ":"];

/** All comparators by their text. */
export const COMPARATORS: ReadonlyMap<string, Comparator> = new Map(ORDERED.map((text) => [text, text]));

/** How a field can be filtered; `rules.ts` has those of common types. */
export interface Rule<C> {
  readonly comparators: readonly Comparator[];
  /** Describes the allowed values, for messages. */
  readonly values: string;
  /** Whether a value may be relative to the current time, such as `now() + "30d"`. */
  readonly takesNow?: boolean;
  /** Returns undefined if the text is not a value of the field. */
  compare(operator: Operator, text: string): C | undefined;
  /** Present if a trailing star is a wildcard. */
  prefix?(value: string): C;
  /** The comparison of `:*`. */
  readonly present: C;
  /** Returns the rule of `<field>.<key>`, for a field with entries. */
  entry?(key: string): Rule<C>;
}

/** Texts for messages. */
interface Description {
  /** The resource with its article, such as `a key`. */
  readonly resource: string;
  /** A comparison. */
  readonly example: string;
  /** The field that takes a wildcard, with its article. */
  readonly wildcardField: string;
}

/** The fields by which a resource can be filtered. */
export interface Fields<C> extends Description {
  readonly names: readonly string[];
  /** Rules by snake_case and lowerCamelCase name. */
  readonly rulesByName: ReadonlyMap<string, Rule<C>>;
}

/** @example defineFields<EventComparison>({ time: timeRule("time") }, { resource: "an event", … }) */
export function defineFields<C>(rules: Readonly<Record<string, Rule<C>>>, description: Description): Fields<C> {
  const both = Object.entries(rules).flatMap(([name, rule]) =>
    [name, camelCase(name)].map((either) => [either, rule] as const),
  );
  return { ...description, names: Object.keys(rules), rulesByName: new Map(both) };
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
