import type { DescEnum } from "@bufbuild/protobuf";
import type {
  EnumRules,
  FieldRules,
  MapRules,
  RepeatedRules,
  StringRules,
} from "../../gen/buf/validate/validate_pb.js";

/**
 * Says yes only of a value that surely keeps its rules. A no says nothing: to tell may cost too much here, or the rule is not
 * known. All rules that our protos may use, those of `proto/buf/validate/validate.proto`, are known.
 */
export type Check = (value: unknown) => boolean;

export const always: Check = () => true;
export const never: Check = () => false;

/** A text that keeps its rules, and what `text.ts` asks of all text. */
export function textCheck({ type }: Pick<FieldRules, "type">): Check {
  if (type.case === undefined) return isPlainText;
  if (type.case !== "string") return never;
  const keeps = stringCheck(type.value);
  return (value) => isPlainText(value) && keeps(value);
}

export function int32Check({ type }: FieldRules): Check {
  if (type.case === undefined) return always;
  if (type.case !== "int32") return never;
  const least = type.value.greaterThan.case === "gte" ? type.value.greaterThan.value : Number.NEGATIVE_INFINITY;
  return (value) => typeof value === "number" && value >= least;
}

export function enumCheck(values: DescEnum, { type }: FieldRules): Check {
  if (type.case === undefined) return always;
  return type.case === "enum" ? enumRulesCheck(values, type.value) : never;
}

/** `judgeItem` judges one item. */
export function listCheck(
  { minItems, maxItems }: Pick<RepeatedRules, "minItems" | "maxItems">,
  judgeItem: Check,
): Check {
  const [min, max] = bounds(minItems, maxItems);
  return (value) =>
    Array.isArray(value) &&
    value.length >= min &&
    value.length <= max &&
    (judgeItem === always || value.every(judgeItem));
}

export function mapCheck(
  { minPairs, maxPairs }: Pick<MapRules, "minPairs" | "maxPairs">,
  judgeKey: Check,
  judgeValue: Check,
): Check {
  const [min, max] = bounds(minPairs, maxPairs);
  return (value) => {
    const entries = Object.entries(Object(value));
    if (entries.length < min || entries.length > max) return false;
    return entries.every(([key, item]) => judgeKey(key) && judgeValue(item));
  };
}

function isPlainText(value: unknown): value is string {
  return typeof value === "string" && !value.includes("\0") && value.isWellFormed();
}

/**
 * A character is one or two code units, and up to three bytes of UTF-8 a unit: so far as that decides, nothing is counted.
 * Patterns are of RE2, and those that we write mean the same here.
 */
function stringCheck({
  minLen,
  maxLen,
  minBytes,
  maxBytes,
  pattern,
  in: allowed,
}: StringRules): (text: string) => boolean {
  const [minCharacters, maxUnits] = bounds(minLen, maxLen);
  const [leastBytes, mostBytes] = bounds(minBytes, maxBytes);
  const minUnits = Math.max(2 * minCharacters - 1, leastBytes);
  const regexp = pattern === undefined ? undefined : new RegExp(pattern);
  return (text) =>
    text.length >= minUnits &&
    text.length <= maxUnits &&
    (3 * text.length <= mostBytes || Buffer.byteLength(text) <= mostBytes) &&
    (regexp === undefined || regexp.test(text)) &&
    (allowed.length === 0 || allowed.includes(text));
}

function enumRulesCheck({ values }: DescEnum, { definedOnly = false, notIn }: EnumRules): Check {
  const defined = new Set(values.map(({ number }) => number));
  return (value) =>
    typeof value === "number" && (!definedOnly || defined.has(value)) && (notIn.length === 0 || !notIn.includes(value));
}

function bounds(min: bigint | undefined, max: bigint | undefined): readonly [min: number, max: number] {
  return [Number(min ?? 0), max === undefined ? Number.POSITIVE_INFINITY : Number(max)];
}
