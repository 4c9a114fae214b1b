import { KEY_KINDS, KEY_STATUSES, REVOCATION_REASONS, UUID } from "../../domain/key.ts";
import { HASH_ALGORITHMS } from "../../domain/raw-key-hash.ts";
import type { Comparison, FieldName, Operator, StringField, TimeField } from "./filter.ts";
import { parseTimestamp } from "./timestamp.ts";

/** A comparator of the language; `:` means "has" (AIP-160, "Has Operator"). */
export type Comparator = Operator | "!=" | ":";

const ORDERED: readonly Comparator[] = ["=", "!=", "<", "<=", ">", ">=", ":"];
const EQUALITY: readonly Comparator[] = ["=", "!=", ":"];
const HAS: readonly Comparator[] = [":"];

/** All comparators by their text. */
export const COMPARATORS: ReadonlyMap<string, Comparator> = new Map(ORDERED.map((text) => [text, text]));

/** How a field can be filtered. */
export interface Rule {
  readonly comparators: readonly Comparator[];
  /** Describes the allowed values, for messages. */
  readonly values: string;
  /** Whether a value may be relative to the current time, such as `now() + "30d"`. */
  readonly takesNow?: boolean;
  /** Returns undefined if the text is not a value of the field. */
  compare(operator: Operator, text: string): Comparison | undefined;
  /** Present if a trailing star is a wildcard. */
  prefix?(value: string): Comparison;
  /** The comparison of `:*`. */
  readonly present: Comparison;
  /** Returns the rule of `<field>.<key>`, for a field with entries. */
  entry?(key: string): Rule;
}

const RULES: { readonly [F in FieldName]: Rule } = {
  key_id: {
    ...partOf("key_id", ORDERED),
    values: "a UUID",
    compare: (operator, text) =>
      UUID.test(text) ? { node: "uuid", field: "key_id", operator, value: text.toLowerCase() } : undefined,
  },
  name: { ...stringRule("name"), prefix: (value) => ({ node: "prefix", field: "name", value }) },
  actor_id: stringRule("actor_id"),
  kind: enumRule("kind", "KEY_KIND_", KEY_KINDS, (value) => ({ node: "kind", value })),
  status: enumRule("status", "KEY_STATUS_", KEY_STATUSES, (value) => ({ node: "status", value })),
  scopes: { ...partOf("scopes", HAS), values: "a scope", compare: (_, value) => ({ node: "scope", value }) },
  metadata: {
    ...partOf("metadata", HAS),
    values: "a key",
    compare: (_, key) => ({ node: "key", key }),
    entry: entryRule,
  },
  create_time: timeRule("create_time"),
  update_time: timeRule("update_time"),
  expire_time: timeRule("expire_time"),
  last_used_time: timeRule("last_used_time"),
  rotate_time: timeRule("rotate_time"),
  revoke_time: timeRule("revoke_time"),
  disable_time: timeRule("disable_time"),
  revocation_reason: enumRule("revocation_reason", "REVOCATION_REASON_", REVOCATION_REASONS, (value) => ({
    node: "reason",
    value,
  })),
  hint: stringRule("hint"),
  created_by: stringRule("created_by"),
  adopted: {
    ...partOf("adopted", EQUALITY),
    values: "true or false",
    compare: (_, text) => (/^(?:true|false)$/.test(text) ? { node: "adopted", value: text === "true" } : undefined),
  },
  hash_algorithm: enumRule("hash_algorithm", "HASH_ALGORITHM_", HASH_ALGORITHMS, (value) => {
    return { node: "hash_algorithm", value };
  }),
};

export const FIELD_NAMES: readonly string[] = Object.keys(RULES);

/** Rules by snake_case and lowerCamelCase name. */
export const RULES_BY_NAME: ReadonlyMap<string, Rule> = new Map(
  Object.entries(RULES).flatMap(([name, rule]) => [name, camelCase(name)].map((either) => [either, rule] as const)),
);

function entryRule(key: string): Rule {
  return {
    comparators: ORDERED,
    present: { node: "key", key },
    values: "a string",
    compare: (operator, value) => ({ node: "entry", key, operator, value }),
  };
}

/** The part of a rule that does not depend on the type of the field. */
function partOf(field: FieldName, comparators: readonly Comparator[]): Pick<Rule, "comparators" | "present"> {
  return { comparators, present: { node: "present", field } };
}

function stringRule(field: StringField): Rule {
  return {
    ...partOf(field, ORDERED),
    values: "a string",
    compare: (operator, value) => ({ node: "string", field, operator, value }),
  };
}

function timeRule(field: TimeField): Rule {
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
function enumRule<V extends string>(
  field: FieldName,
  prefix: string,
  values: readonly V[],
  equal: (value: V) => Comparison,
): Rule {
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

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
