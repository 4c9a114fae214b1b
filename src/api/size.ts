import { type DescField, type DescMessage, getOption, isMessage, type Message } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules, type StringRules } from "../../gen/buf/validate/validate_pb.js";
import type { FieldViolation } from "../domain/errors.ts";

interface SizeLimits {
  /** Entries of a list or map. */
  readonly entries: number | undefined;
  /** Rules of a text, or of the texts in a list. */
  readonly texts: readonly StringRules[];
}

const limits = new WeakMap<DescField, SizeLimits>();

/**
 * Lists, maps and texts that are larger than their rules allow. The validator knows the rules too, but evaluates all others besides: of
 * what fits into a request, that would take seconds, and an answer larger than the request. Texts are found here when they are
 * much too long; the validator counts the characters of the others.
 */
export function sizeViolations(schema: DescMessage, message: Message): FieldViolation[] {
  return schema.fields.flatMap((field) => inField(field, Reflect.get(message, field.localName)));
}

function inField(field: DescField, value: unknown): FieldViolation[] {
  if (value === undefined) return [];
  if (field.fieldKind === "message") {
    return isMessage(value, field.message) ? within(field.name, sizeViolations(field.message, value)) : [];
  }
  const { entries, texts } = limitsOf(field);
  if (entries !== undefined && countEntries(value) > entries) {
    return [{ field: field.name, description: `must have at most ${entries} entries` }];
  }
  return texts.length === 0 ? [] : longTexts(field.name, value, texts);
}

function within(parent: string, violations: readonly FieldViolation[]): FieldViolation[] {
  return violations.map(({ field, description }) => ({ field: `${parent}.${field}`, description }));
}

function countEntries(value: unknown): number {
  return Array.isArray(value) ? value.length : Object.keys(Object(value)).length;
}

function longTexts(path: string, value: unknown, rules: readonly StringRules[]): FieldViolation[] {
  if (!Array.isArray(value)) return longText(path, String(value), rules);
  return value.flatMap((item, index) => longText(`${path}[${index}]`, String(item), rules));
}

/** In code units. The validator evaluates shorter texts fast enough, and says all that is wrong with them. */
const LONG = 16_384;

/** A character is one or two code units, and at least one byte of UTF-8 a unit. */
function longText(field: string, text: string, rules: readonly StringRules[]): FieldViolation[] {
  if (text.length <= LONG) return [];
  for (const { maxLen, maxBytes } of rules) {
    if (maxLen !== undefined && text.length > 2 * Number(maxLen)) {
      return [{ field, description: `must be at most ${maxLen} characters` }];
    }
    if (maxBytes !== undefined && text.length > Number(maxBytes)) {
      return [{ field, description: `must be at most ${maxBytes} bytes` }];
    }
  }
  return [];
}

function limitsOf(field: DescField): SizeLimits {
  const known = limits.get(field) ?? readLimits(getOption(field, fieldRules));
  limits.set(field, known);
  return known;
}

function readLimits({ type }: FieldRules): SizeLimits {
  switch (type.case) {
    case "string":
      return { entries: undefined, texts: [type.value] };
    case "repeated":
      return { entries: toNumber(type.value.maxItems), texts: textRules(type.value.items) };
    case "map":
      return { entries: toNumber(type.value.maxPairs), texts: [] };
    default:
      return { entries: undefined, texts: [] };
  }
}

function textRules(rules: FieldRules | undefined): StringRules[] {
  return rules?.type.case === "string" ? [rules.type.value] : [];
}

function toNumber(value: bigint | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}
