import type { DescMessage, Message } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "vitest";
import {
  EnumRulesSchema,
  FieldRulesSchema,
  Int32RulesSchema,
  MapRulesSchema,
  RepeatedRulesSchema,
  StringRulesSchema,
} from "../../gen/buf/validate/validate_pb.js";
import { file_keyhold_v2alpha1_api_keys } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { file_keyhold_v2alpha1_derived_keys } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { file_keyhold_v2alpha1_imported_api_keys } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { file_keyhold_v2alpha1_issued_api_keys } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { file_keyhold_v2alpha1_self_service } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { isSurelyValid } from "../../src/api/quick-validation.ts";
import { sizeViolations } from "../../src/api/size.ts";
import { textViolations } from "../../src/api/text.ts";
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

/** In hundredths. */
const ODDITIES = [0, 2, 10, 40];
const ROUNDS = 300;

const validator = createValidator();
const random = seededBy("QUICK_VALIDATION_SEED");

/** The slow way, of which the quick one may never say less. */
function isValid(schema: DescMessage, message: Message): boolean {
  if (sizeViolations(schema, message).length > 0 || textViolations(schema, message).length > 0) return false;
  const { kind } = validator.validate(schema, message);
  expect(kind).not.toBe("error");
  return kind === "valid";
}

test("there are requests", () => {
  expect(REQUESTS.length).toBeGreaterThan(14);
});

describe.each(REQUESTS)("$name", (schema) => {
  test("is valid whenever it surely is, and the other way nearly always", () => {
    const seen = { sure: 0, valid: 0 };
    for (const oddity of ODDITIES) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const message = randomMessage(schema, random, oddity);
        const sure = isSurelyValid(schema, message);
        const valid = isValid(schema, message);
        if (sure && !valid) throw new Error(`surely valid but not valid: ${JSON.stringify(message)}`);
        seen.sure += Number(sure);
        seen.valid += Number(valid);
      }
    }
    expect(seen.valid).toBeGreaterThan(ROUNDS / 4);
    expect(seen.sure).toBeGreaterThan(0.9 * seen.valid);
  });
});

test("a message of another type is not surely valid", () => {
  for (const [index, schema] of REQUESTS.entries()) {
    const other = REQUESTS[(index + 1) % REQUESTS.length] ?? schema;
    expect(isSurelyValid(schema, randomMessage(other, random, 0))).toBe(false);
  }
});

/** Whoever lets our protos use another rule must make it known to `quick-rules.ts`, and add it here. */
test("every rule that a proto may use is known", () => {
  const namesOf = ({ fields }: DescMessage) => fields.map(({ name }) => name).sort();
  expect(namesOf(FieldRulesSchema)).toEqual(["enum", "ignore", "int32", "map", "repeated", "required", "string"]);
  expect(namesOf(Int32RulesSchema)).toEqual(["gte"]);
  expect(namesOf(EnumRulesSchema)).toEqual(["defined_only", "not_in"]);
  expect(namesOf(RepeatedRulesSchema)).toEqual(["items", "max_items", "min_items"]);
  expect(namesOf(MapRulesSchema)).toEqual(["keys", "max_pairs", "min_pairs", "values"]);
  const lengths = ["max_bytes", "max_len", "min_bytes", "min_len"];
  expect(namesOf(StringRulesSchema)).toEqual(["in", ...lengths, "pattern"]);
});
