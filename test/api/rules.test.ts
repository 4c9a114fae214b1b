import type { DescMessage, Message } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, test } from "vitest";
import { checkOf } from "../../src/api/rules.ts";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { randomMessage } from "../support/random-message.ts";
import { seededBy } from "../support/seeded.ts";

const REQUESTS = SERVICES.flatMap(({ methods }) => methods.map(({ input }): DescMessage => input));

/** Percentage of invalid values. */
const ODDITIES = [0, 2, 10, 40];
const ROUNDS = 300;

const validator = createValidator();
const random = seededBy("RULES_SEED");

const REASONS: Readonly<Record<string, string>> = {
  required: "FIELD_REQUIRED",
  "int32.gte": "OUT_OF_RANGE",
  "int64.gte": "OUT_OF_RANGE",
  "enum.defined_only": "UNKNOWN_ENUM_VALUE",
  "repeated.min_items": "TOO_FEW_ITEMS",
  "repeated.max_items": "TOO_MANY_ITEMS",
  "map.max_pairs": "TOO_MANY_ITEMS",
  "string.min_len": "STRING_TOO_SHORT",
  "string.max_len": "STRING_TOO_LONG",
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

/** A rule of the protos that `rules.ts` does not support fails here: random messages break it. */
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
    // Few random messages have all fields of all limits.
    expect(seen.valid).toBeGreaterThan(ROUNDS / 12);
  });
});
