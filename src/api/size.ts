import { type DescField, type DescMessage, getOption, isMessage, type Message } from "@bufbuild/protobuf";
import { field as fieldRules } from "../../gen/buf/validate/validate_pb.js";
import type { FieldViolation } from "../errors.ts";

/** How many entries a list or map may have; undefined where no rule says so. */
const limits = new WeakMap<DescField, { readonly max: number | undefined }>();

/**
 * Lists and maps with more entries than their rule allows. The validator knows the rule too, but judges every entry besides:
 * of the many that fit into a request, that would take seconds and an answer larger than the request.
 */
export function sizeViolations(schema: DescMessage, message: Message): FieldViolation[] {
  return schema.fields.flatMap((field) => inField(field, Reflect.get(message, field.localName)));
}

function inField(field: DescField, value: unknown): FieldViolation[] {
  switch (field.fieldKind) {
    case "message":
      return isMessage(value, field.message) ? within(field.name, sizeViolations(field.message, value)) : [];
    case "list":
    case "map": {
      const max = maxEntries(field);
      if (max === undefined || countEntries(value) <= max) return [];
      return [{ field: field.name, description: `must have at most ${max} entries` }];
    }
    default:
      return [];
  }
}

function within(parent: string, violations: readonly FieldViolation[]): FieldViolation[] {
  return violations.map(({ field, description }) => ({ field: `${parent}.${field}`, description }));
}

function countEntries(value: unknown): number {
  return Array.isArray(value) ? value.length : Object.keys(Object(value)).length;
}

function maxEntries(field: DescField): number | undefined {
  const limit = limits.get(field) ?? { max: readLimit(field) };
  limits.set(field, limit);
  return limit.max;
}

function readLimit(field: DescField): number | undefined {
  const { type } = getOption(field, fieldRules);
  const max = type.case === "repeated" ? type.value.maxItems : type.case === "map" ? type.value.maxPairs : undefined;
  return max === undefined ? undefined : Number(max);
}
