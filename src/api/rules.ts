import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldRules, Ignore, type StringRules } from "../../gen/buf/validate/validate_pb.js";
import type { FieldViolation, InvalidReason } from "../domain/errors.ts";
import { memoizeByIdentity } from "../lib/memoize.ts";
import { keyStep, textViolationsIn } from "./text.ts";

/**
 * Returns the violations of a value; for a valid one always the same empty array. `field` is the path from the value; empty for the value
 * itself. A value that is too large is not evaluated further, and text that cannot be stored by no other rule.
 */
export type Check = (value: unknown) => readonly FieldViolation[];

/** A rule as a predicate, with the description and the reason of its violation. */
type Rule<T> = readonly [keeps: (value: T) => boolean, description: string, reason: InvalidReason];

const NONE: readonly FieldViolation[] = [];
const always: Check = () => NONE;

/**
 * Returns the check of a message, compiled from the `buf.validate` rules of its fields on first use. Supports the rules that our protos use:
 * the tests compare it with Protovalidate for every request. Throws `Error` for a rule of another type.
 */
export const checkOf = memoizeByIdentity(messageCheck);

function messageCheck(desc: DescMessage): Check {
  const fields = desc.fields
    .map((field) => ({ name: field.name, localName: field.localName, check: fieldCheck(field) }))
    .filter(({ check }) => check !== always);
  return (message) => {
    let all = NONE;
    for (const { name, localName, check } of fields) {
      const found = check(Reflect.get(Object(message), localName));
      if (found.length > 0) all = [...all, ...within(name, found)];
    }
    return all;
  };
}

function unsupported(field: DescField): Error {
  return new Error(`${field}: src/api/rules.ts does not support this buf.validate rule`);
}

/** Returns only the rules that are set: with proto2, a field that is not set has its default in the prototype. */
export function declared<T extends object>(rules: T): Partial<T> {
  return { ...rules };
}

/** Puts a step before the path of each violation. */
function within(step: string, violations: readonly FieldViolation[]): FieldViolation[] {
  return violations.map(({ field, ...rest }) => {
    return { ...rest, field: field === "" || field.startsWith("[") ? step + field : `${step}.${field}` };
  });
}

/** An absent value satisfies every rule but `required`. */
function fieldCheck(field: DescField): Check {
  const rules = getOption(field, fieldRules);
  if (rules.ignore !== Ignore.UNSPECIFIED || field.oneof !== undefined) throw unsupported(field);
  const check = valueCheck(field, rules);
  if (!rules.required) return check === always ? always : (value) => (value === undefined ? NONE : check(value));
  return (value) => (value === undefined || value === "" || value === 0 ? REQUIRED : check(value));
}

const REQUIRED: readonly FieldViolation[] = [{ field: "", description: "is required", reason: "FIELD_REQUIRED" }];

function valueCheck(field: DescField, { type, required }: FieldRules): Check {
  if (field.fieldKind === "list" || field.fieldKind === "map") {
    if (required) throw unsupported(field);
    return field.fieldKind === "list" ? listCheck(field, type) : mapCheck(field, type);
  }
  if (type.case === "string") return textCheck(type.value);
  if (type.case === "int32" || type.case === "int64") {
    const { value: min = Number.NEGATIVE_INFINITY } = type.value.greaterThan;
    return ruleCheck<number | bigint>([[(value) => value >= min, `must be at least ${min}`, "OUT_OF_RANGE"]]);
  }
  if (type.case === "enum" && type.value.definedOnly && field.enum !== undefined) {
    const { value: defined } = field.enum;
    return ruleCheck<number>([[(value) => value in defined, "has an unknown enum value", "UNKNOWN_ENUM_VALUE"]]);
  }
  if (type.case !== undefined) throw unsupported(field);
  if (field.scalar === ScalarType.STRING) return textCheck();
  return field.message === undefined ? always : nestedCheck(field.message);
}

/** A message may contain itself, so the check of a nested message is compiled on first use. */
function nestedCheck(desc: DescMessage): Check {
  if (desc.typeName === StructSchema.typeName) return unstorable;
  return (value) => checkOf(desc)(value);
}

const unstorable: Check = (value) => textViolationsIn("", value);

/** The items of batches are validated separately. */
function listCheck(field: DescField & { fieldKind: "list" }, type: FieldRules["type"]): Check {
  const rules = type.case === "repeated" ? declared(type.value) : undefined;
  const item = itemCheck(field, rules?.items);
  const size = sizeCheck(rules?.minItems, rules?.maxItems);
  return (value) => {
    const list = Array.isArray(value) ? value : [];
    const wrong = size(list.length);
    if (wrong.length > 0 || item === always) return wrong;
    return list.flatMap((entry, index) => {
      const found = item(entry);
      return found.length === 0 ? NONE : within(`[${index}]`, found);
    });
  };
}

function itemCheck(field: DescField & { fieldKind: "list" }, rules: FieldRules | undefined): Check {
  if (field.listKind !== "message") return entryCheck(field, rules);
  if (rules === undefined) return nestedCheck(field.message);
  if (rules.ignore !== Ignore.ALWAYS) throw unsupported(field);
  return always;
}

function mapCheck(field: DescField & { fieldKind: "map" }, type: FieldRules["type"]): Check {
  const rules = type.case === "map" ? declared(type.value) : undefined;
  const [keyCheck, entry] = [entryCheck(field, rules?.keys), entryCheck(field, rules?.values)];
  const size = sizeCheck(0n, rules?.maxPairs);
  return (value) => {
    const entries = Object.entries(Object(value));
    const wrong = size(entries.length);
    if (wrong.length > 0) return wrong;
    return entries.flatMap(([key, text]) => {
      const ofKey = keyCheck(key);
      // Without its name, which cannot be shown.
      if (ofKey.some(({ reason }) => reason === "INVALID_CHARACTER")) return ofKey;
      const found = entry(text);
      return found.length === 0 && ofKey.length === 0 ? NONE : within(keyStep(key), [...ofKey, ...found]);
    });
  };
}

/** The check of a text or an enum in a list or map. */
function entryCheck(field: DescField, rules: FieldRules | undefined): Check {
  if (field.enum && rules === undefined) return always;
  if (field.scalar !== ScalarType.STRING || rules?.required || rules?.ignore) throw unsupported(field);
  if (rules === undefined || rules.type.case === undefined) return textCheck();
  if (rules.type.case !== "string") throw unsupported(field);
  return textCheck(rules.type.value);
}

function sizeCheck(min = 0n, max: bigint | undefined) {
  const tooFew = {
    field: "",
    description: `must have at least ${min} ${min === 1n ? "item" : "items"}`,
    reason: "TOO_FEW_ITEMS",
  } as const;
  const tooMany = { field: "", description: `must have at most ${max} entries`, reason: "TOO_MANY_ITEMS" } as const;
  return (size: number): readonly FieldViolation[] => {
    if (size > Number(max ?? Number.POSITIVE_INFINITY)) return [tooMany];
    return size < min ? [tooFew] : NONE;
  };
}

/** In code units. A longer text with a wrong length is not matched against patterns, which would take too long. */
const LONG = 16_384;

function textCheck(rules?: StringRules): Check {
  const lengths = rules === undefined ? [] : lengthRules(rules);
  const tooLong = ruleCheck(lengths);
  const others = ruleCheck([...lengths, ...(rules === undefined ? [] : contentRules(rules))]);
  return (value) => {
    const text = String(value);
    const long = text.length > LONG ? tooLong(text) : NONE;
    if (long.length > 0) return long.slice(0, 1);
    const bad = unstorable(text);
    return bad.length > 0 ? bad : others(text);
  };
}

/** Lengths in characters (code points: one or two code units) and in bytes of UTF-8 (three per code unit at most). */
function lengthRules(all: StringRules): Rule<string>[] {
  const { minLen, maxLen, maxBytes } = declared(all);
  const rules: Rule<string>[] = [];
  if (minLen !== undefined) {
    const enough = 2n * minLen;
    rules.push([
      (text) => text.length >= enough || characters(text) >= minLen,
      `must have at least ${minLen} characters`,
      "STRING_TOO_SHORT",
    ]);
  }
  if (maxLen !== undefined) {
    rules.push([
      (text) => text.length <= maxLen || characters(text) <= maxLen,
      `must have at most ${maxLen} characters`,
      "STRING_TOO_LONG",
    ]);
  }
  if (maxBytes !== undefined) {
    rules.push([
      (text) => 3 * text.length <= maxBytes || Buffer.byteLength(text) <= maxBytes,
      `must have at most ${maxBytes} bytes`,
      "STRING_TOO_LONG",
    ]);
  }
  return rules;
}

function characters(text: string): number {
  return [...text].length;
}

/** What a text must be that matches a pattern. */
const PATTERNS: Readonly<Record<string, string>> = {
  "^[!-~]+$": "must be visible ASCII without spaces",
  "^[A-Za-z0-9._-]+$": "must use only letters, digits, dots, hyphens and underscores",
};

/** Patterns are RE2. Those in our protos have the same meaning in JavaScript. */
function contentRules(all: StringRules): Rule<string>[] {
  const { pattern, in: allowed = [] } = declared(all);
  const rules: Rule<string>[] = [];
  if (pattern !== undefined) {
    const regexp = new RegExp(pattern);
    rules.push([(text) => regexp.test(text), PATTERNS[pattern] ?? `must match ${pattern}`, "INVALID_FORMAT"]);
  }
  if (allowed.length > 0) {
    rules.push([(text) => allowed.includes(text), `must be one of ${allowed.join(", ")}`, "VALUE_NOT_ALLOWED"]);
  }
  return rules;
}

function ruleCheck<T>(rules: readonly Rule<T>[]): Check {
  return (value) => {
    let found = NONE;
    for (const [keeps, description, reason] of rules) {
      if (!keeps(value as T)) found = [...found, { field: "", description, reason }];
    }
    return found;
  };
}
