import type { DescMessage, Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
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

/** Returns the violations that protovalidate finds, as `field: description`. */
function expected(schema: DescMessage, message: Message): string[] {
  const result = validator.validate(schema, message);
  if (result.kind === "error") throw result.error;
  return (result.violations ?? []).map(({ field, message }) => `${pathToString(field)}: ${message}`);
}

test("the list of requests is not empty", () => {
  expect(REQUESTS.length).toBeGreaterThan(14);
});

describe.each(REQUESTS)("$name", (schema) => {
  test("finds the same violations as protovalidate", () => {
    const seen = { valid: 0, compared: 0 };
    const check = checkOf(schema);
    for (const oddity of ODDITIES) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const message = randomMessage(schema, random, oddity);
        const found = check(message);
        const wanted = expected(schema, message);
        if (found.length === 0) expect(wanted).toEqual([]);
        // Sizes have their own message, and text that cannot be stored is checked by no other rule.
        else if (found.some(({ kind }) => kind === "size")) expect(wanted).not.toEqual([]);
        else if (found.every(({ kind }) => kind === "rule")) {
          expect(found.map(({ field, description }) => `${field}: ${description}`)).toEqual(wanted);
          seen.compared += 1;
        }
        seen.valid += Number(wanted.length === 0 && found.length === 0);
      }
    }
    expect(seen.valid).toBeGreaterThan(ROUNDS / 4);
  });
});

/** Before the protos may use another rule, support it in `src/api/rules.ts` and add it here. */
test("every rule in the protos is supported", () => {
  const namesOf = ({ fields }: DescMessage) => fields.map(({ name }) => name).sort();
  expect(namesOf(FieldRulesSchema)).toEqual(["enum", "ignore", "int32", "map", "repeated", "required", "string"]);
  expect(namesOf(Int32RulesSchema)).toEqual(["gte"]);
  expect(namesOf(EnumRulesSchema)).toEqual(["defined_only", "not_in"]);
  expect(namesOf(RepeatedRulesSchema)).toEqual(["items", "max_items", "min_items"]);
  expect(namesOf(MapRulesSchema)).toEqual(["keys", "max_pairs", "min_pairs", "values"]);
  const lengths = ["max_bytes", "max_len", "min_bytes", "min_len"];
  expect(namesOf(StringRulesSchema)).toEqual(["in", ...lengths, "pattern"]);
});
