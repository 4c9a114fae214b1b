import { type DescField, getOption, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { type FieldRules, field as fieldRules, type StringRules } from "../../gen/buf/validate/validate_pb.js";
import { FieldBehavior, field_behavior } from "../../gen/google/api/field_behavior_pb.js";
import { declared } from "../../src/api/rules.ts";

/** Whether a request without the field is invalid: also a list that may not be empty. */
export function isRequired(field: DescField): boolean {
  const { required, type } = getOption(field, fieldRules);
  return required === true || (type.case === "repeated" && (type.value.minItems ?? 0n) > 0n);
}

/** What a caller may set in a resource: neither what the service sets, nor what never changes. */
export function isSettable(field: DescField): boolean {
  const behaviors = getOption(field, field_behavior);
  return !behaviors.includes(FieldBehavior.OUTPUT_ONLY) && !behaviors.includes(FieldBehavior.IMMUTABLE);
}

/** The rules of a field (buf.validate) as keywords of JSON Schema. A bound in bytes bounds the characters too. */
export function constraintsOf(field: DescField): JsonObject {
  // A string that is required may not be empty.
  const isText = field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;
  return { ...(isText && isRequired(field) ? { minLength: 1 } : {}), ...keywordsOf(getOption(field, fieldRules)) };
}

/** The rules of the items of a list. */
export function itemConstraintsOf(field: DescField): JsonObject {
  const { type } = getOption(field, fieldRules);
  return type.case === "repeated" && type.value.items !== undefined ? keywordsOf(type.value.items) : {};
}

function keywordsOf({ type }: FieldRules): JsonObject {
  switch (type.case) {
    case "string":
      return ofString(type.value);
    case "int32":
    case "int64":
      return type.value.greaterThan.case === "gte" ? { minimum: Number(type.value.greaterThan.value) } : {};
    case "repeated":
      return defined({ minItems: type.value.minItems, maxItems: type.value.maxItems });
    case "map": {
      const keys: JsonObject = type.value.keys === undefined ? {} : { propertyNames: keywordsOf(type.value.keys) };
      return { ...defined({ minProperties: type.value.minPairs, maxProperties: type.value.maxPairs }), ...keys };
    }
    default:
      return {};
  }
}

function ofString(rules: StringRules): JsonObject {
  const { minLen, minBytes, maxLen, maxBytes, pattern, in: values = [] } = declared(rules);
  const lengths = defined({ minLength: minLen ?? minBytes, maxLength: maxLen ?? maxBytes });
  // The empty string is the same as no value. As a member of an enum it has no name in generated code.
  const named = values.filter((value) => value !== "");
  return { ...lengths, ...(pattern ? { pattern } : {}), ...(named.length > 0 ? { enum: named } : {}) };
}

/** Only bounds that a proto sets: a bound that is not set is absent or 0. */
function defined(bounds: Readonly<Record<string, bigint | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(bounds).flatMap(([name, bound]) => (bound ? [[name, Number(bound)]] : [])));
}
