import {
  create,
  createFileRegistry,
  type DescMessage,
  type Message,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProtoSchema,
  FieldDescriptorProto_Type,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "vitest";
import {
  FieldRulesSchema,
  field as fieldRules,
  Ignore,
  MessageRulesSchema,
  message as messageRules,
  StringRulesSchema,
} from "../../gen/buf/validate/validate_pb.js";
import { file_keyhold_v2alpha1_api_keys } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { file_keyhold_v2alpha1_derived_keys } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { file_keyhold_v2alpha1_issued_api_keys } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { file_keyhold_v2alpha1_self_service } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { checkOf } from "../../src/api/rules.ts";
import { randomMessage } from "../support/random-message.ts";
import { seededBy } from "../support/seeded.ts";

const FILES = [
  file_keyhold_v2alpha1_api_keys,
  file_keyhold_v2alpha1_derived_keys,
  file_keyhold_v2alpha1_imported_api_keys,
  file_keyhold_v2alpha1_issued_api_keys,
  file_keyhold_v2alpha1_self_service,
];
const REQUESTS = FILES.flatMap((file) => file.services.flatMap(({ methods }) => methods.map(({ input }) => input)));

/** Percentage of invalid values. */
const ODDITIES = [0, 2, 10, 40];
const ROUNDS = 300;

const validator = createValidator();
const random = seededBy("RULES_SEED");

const REASONS: Readonly<Record<string, string>> = {
  required: "FIELD_REQUIRED",
  "int32.gte": "OUT_OF_RANGE",
  "enum.not_in": "VALUE_NOT_ALLOWED",
  "enum.defined_only": "UNKNOWN_ENUM_VALUE",
  "repeated.min_items": "TOO_FEW_ITEMS",
  "repeated.max_items": "TOO_MANY_ITEMS",
  "map.min_pairs": "TOO_FEW_ITEMS",
  "map.max_pairs": "TOO_MANY_ITEMS",
  "string.min_len": "STRING_TOO_SHORT",
  "string.max_len": "STRING_TOO_LONG",
  "string.min_bytes": "STRING_TOO_SHORT",
  "string.max_bytes": "STRING_TOO_LONG",
  "string.pattern": "INVALID_FORMAT",
  "string.in": "VALUE_NOT_ALLOWED",
};

/** Returns the violations that protovalidate finds, as `field: reason`. */
function expected(schema: DescMessage, message: Message): string[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  return (result.violations ?? []).map(({ field, ruleId }) => `${pathToString(field)}: ${REASONS[ruleId] ?? ruleId}`);
}

describe.each(REQUESTS)("$name", (schema) => {
  test("finds the same violations as protovalidate", () => {
    const seen = { valid: 0, compared: 0 };
    const check = checkOf(schema);
    for (const oddity of ODDITIES) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const message = randomMessage(schema, random, oddity);
        const found = check(message);
        const wanted = expected(schema, message);
        const texts = found.map(({ field, reason }) => `${field}: ${reason}`);
        // Numbers of items have their own message, and text that cannot be stored is checked by no other rule.
        if (found.some(({ reason }) => reason === "TOO_MANY_ITEMS")) expect(wanted).not.toEqual([]);
        else if (found.every(({ reason }) => reason !== "INVALID_CHARACTER")) {
          // A text that is too long may be checked by no other rule.
          const long = found.filter(({ reason }) => reason === "STRING_TOO_LONG").map(({ field }) => `${field}: `);
          const ofOthers = (text: string) => !long.some((field) => text.startsWith(field));
          expect(texts.filter(ofOthers)).toEqual(wanted.filter(ofOthers));
          expect(wanted).toEqual(expect.arrayContaining(texts));
          seen.compared += 1;
        }
        seen.valid += Number(wanted.length === 0 && found.length === 0);
      }
    }
    expect(seen.valid).toBeGreaterThan(ROUNDS / 4);
  });
});

/** Returns a message with one field, with these rules. */
function withRules(type: FieldDescriptorProto_Type, rules: MessageInitShape<typeof FieldRulesSchema>): DescMessage {
  const options = create(FieldOptionsSchema);
  setExtension(options, fieldRules, create(FieldRulesSchema, rules));
  return declare({ field: [{ name: "value", number: 1, type, label: Label.OPTIONAL, options }] });
}

function declare(message: MessageInitShape<typeof DescriptorProtoSchema>): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "a.proto",
    syntax: "proto3",
    messageType: [{ ...message, name: "Declared" }],
  });
  const desc = createFileRegistry(file, () => undefined).getMessage("Declared");
  return desc ?? expect.fail("the message is not declared");
}

test("a supported rule is checked", () => {
  const desc = withRules(FieldDescriptorProto_Type.STRING, { type: { case: "string", value: { maxLen: 1n } } });
  expect(checkOf(desc)({ value: "ab" })).toHaveLength(1);
});

/** Before the protos may use another rule, support it in `src/api/rules.ts` and in the list in `src/api/declared-rules.ts`. */
describe("a rule that is not supported is refused, not ignored:", () => {
  const { BOOL, INT32, STRING } = FieldDescriptorProto_Type;
  const unsupported: [name: string, FieldDescriptorProto_Type, MessageInitShape<typeof FieldRulesSchema>][] = [
    ["another rule of a string", STRING, { type: { case: "string", value: { prefix: "kh_" } } }],
    ["a well-known format", STRING, { type: { case: "string", value: { wellKnown: { case: "email", value: true } } } }],
    ["another bound", INT32, { type: { case: "int32", value: { lessThan: { case: "lt", value: 9 } } } }],
    ["another case of a bound", INT32, { type: { case: "int32", value: { greaterThan: { case: "gt", value: 9 } } } }],
    ["rules of another type", BOOL, { type: { case: "bool", value: { const: true } } }],
    ["an expression", STRING, { celExpression: ["this != ''"] }],
    ["a condition", STRING, { ignore: Ignore.IF_ZERO_VALUE }],
  ];
  test.each(unsupported)("%s", (_name, type, rules) => {
    const desc = withRules(type, rules);
    expect(() => checkOf(desc)).toThrow("field Declared.value: a buf.validate rule that");
  });

  test("a predefined rule of another package", () => {
    const value = create(StringRulesSchema);
    value.$unknown = [{ no: 1161, wireType: WireType.Varint, data: Uint8Array.of(1) }];
    const desc = withRules(STRING, { type: { case: "string", value } });
    expect(() => checkOf(desc)).toThrow("field Declared.value: a buf.validate rule that");
  });

  test("a rule of a whole message", () => {
    const options = create(MessageOptionsSchema);
    setExtension(options, messageRules, create(MessageRulesSchema, { celExpression: ["true"] }));
    const desc = declare({ options });
    expect(() => checkOf(desc)).toThrow("message Declared: a buf.validate rule that");
  });
});
