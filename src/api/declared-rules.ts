import { type DescField, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import { isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import {
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  message as messageRules,
} from "../../gen/buf/validate/validate_pb.js";

/** The fields of the messages of `buf/validate/validate.proto` that `rules.ts` supports. */
const SUPPORTED: Readonly<Record<string, readonly string[]>> = {
  FieldRules: ["enum", "ignore", "int32", "map", "repeated", "required", "string"],
  EnumRules: ["defined_only", "not_in"],
  Int32Rules: ["gte"],
  MapRules: ["keys", "max_pairs", "min_pairs", "values"],
  RepeatedRules: ["items", "max_items", "min_items"],
  StringRules: ["in", "max_bytes", "max_len", "min_bytes", "min_len", "pattern"],
};

/** Returns the `buf.validate` rules of a field. Throws `Error` for a rule that `rules.ts` does not support. */
export function rulesOf(field: DescField): FieldRules {
  const rules = getOption(field, fieldRules);
  assertSupported(field, reflect(FieldRulesSchema, rules));
  return rules;
}

/** Throws `Error` for a message with rules of its own: only rules of fields are supported. */
export function assertNoMessageRules(desc: DescMessage): void {
  if (hasOption(desc, messageRules)) throw unsupported(desc);
}

export function unsupported(desc: DescField | DescMessage): Error {
  return new Error(`${desc}: a buf.validate rule that src/api/rules.ts does not support`);
}

/** Predefined rules of others are extensions, which are unknown fields here. */
function assertSupported(field: DescField, rules: ReflectMessage): void {
  if (rules.getUnknown() !== undefined) throw unsupported(field);
  for (const rule of rules.fields.filter((one) => rules.isSet(one))) {
    if (!SUPPORTED[rules.desc.name]?.includes(rule.name)) throw unsupported(field);
    const value: unknown = rules.get(rule);
    if (isReflectMessage(value)) assertSupported(field, value);
  }
}

/** Returns only the rules that are set: with proto2, a field that is not set has its default in the prototype. */
export function declared<T extends object>(rules: T): Partial<T> {
  return { ...rules };
}
