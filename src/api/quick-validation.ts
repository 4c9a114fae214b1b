import { type DescField, type DescMessage, getOption, isMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, field as fieldRules, Ignore } from "../../gen/buf/validate/validate_pb.js";
import { always, type Check, enumCheck, int32Check, listCheck, mapCheck, never, textCheck } from "./quick-rules.ts";
import { textViolationsIn } from "./text.ts";

type DescList = Extract<DescField, { fieldKind: "list" }>;
type DescMap = Extract<DescField, { fieldKind: "map" }>;

const checks = new WeakMap<DescMessage, Check>();

/**
 * Whether surely nothing is wrong with a message, neither by the rules of its proto nor by those for text and size. A no says
 * nothing, and the validator must be asked. It costs a tenth of asking, and the validator is not even loaded as long as all
 * requests are as they should be.
 */
export function isSurelyValid(schema: DescMessage, message: Message): boolean {
  const check = checks.get(schema) ?? messageCheck(schema);
  checks.set(schema, check);
  return check(message);
}

/** Only rules of fields are known here. */
function messageCheck(schema: DescMessage): Check {
  if (schema.proto.options !== undefined) return never;
  const fields = schema.fields.map((field) => ({ name: field.localName, check: fieldCheck(field) }));
  return (value) => isMessage(value, schema) && fields.every(({ name, check }) => check(Reflect.get(value, name)));
}

/** What is absent keeps every rule but the one that requires it. */
function fieldCheck(field: DescField): Check {
  const rules = getOption(field, fieldRules);
  if (field.oneof !== undefined || (rules.ignore ?? Ignore.UNSPECIFIED) !== Ignore.UNSPECIFIED) return never;
  const check = valueCheck(field, rules);
  if (!rules.required) return (value) => value === undefined || check(value);
  const isSingle = field.fieldKind !== "list" && field.fieldKind !== "map";
  return isSingle ? (value) => value !== undefined && value !== "" && value !== 0 && check(value) : never;
}

function valueCheck(field: DescField, rules: FieldRules): Check {
  switch (field.fieldKind) {
    case "scalar":
      return scalarCheck(field.scalar, rules);
    case "enum":
      return enumCheck(field.enum, rules);
    case "message":
      return rules.type.case === undefined ? nestedCheck(field.message) : never;
    case "list":
      return listFieldCheck(field, rules);
    case "map":
      return mapFieldCheck(field, rules);
  }
}

function scalarCheck(scalar: ScalarType, rules: FieldRules): Check {
  if (scalar === ScalarType.STRING) return textCheck(rules);
  if (scalar === ScalarType.INT32) return int32Check(rules);
  return rules.type.case === undefined ? always : never;
}

/** A message may hold itself, so what is within is not compiled before it is met. */
function nestedCheck(schema: DescMessage): Check {
  if (schema.typeName === StructSchema.typeName) return (value) => textViolationsIn("", value).length === 0;
  return (value) => isMessage(value, schema) && isSurelyValid(schema, value);
}

/** Messages in lists are items of batches, which are judged one by one: their rules are ignored. */
function listFieldCheck(field: DescList, { type }: FieldRules): Check {
  if (type.case !== undefined && type.case !== "repeated") return never;
  const { items, ...limits } = type.case === "repeated" ? type.value : {};
  if (field.listKind === "message") return items?.ignore === Ignore.ALWAYS ? listCheck(limits, always) : never;
  const isText = field.listKind === "scalar" && field.scalar === ScalarType.STRING;
  return isText ? listCheck(limits, textCheckOf(items)) : never;
}

function mapFieldCheck(field: DescMap, { type }: FieldRules): Check {
  if (type.case !== undefined && type.case !== "map") return never;
  const { keys, values, ...limits } = type.case === "map" ? type.value : {};
  const isText = field.mapKey === ScalarType.STRING && field.mapKind === "scalar" && field.scalar === ScalarType.STRING;
  return isText ? mapCheck(limits, textCheckOf(keys), textCheckOf(values)) : never;
}

/** Of an item, key or value. */
function textCheckOf(rules: FieldRules | undefined): Check {
  if (rules === undefined) return textCheck({ type: { case: undefined } });
  return rules.required || rules.ignore !== undefined ? never : textCheck(rules);
}
