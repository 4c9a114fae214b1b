import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { structFieldSize } from "../../src/api/struct-size.ts";
import { anyText } from "../lib/any-text.ts";

/** Lengths whose varints have one to three bytes. */
const texts = fc.oneof(
  anyText.map((text) => text.toWellFormed()),
  fc.constantFrom(127, 128, 16_383, 16_384).map((length) => "x".repeat(length)),
);
const values = fc.oneof(fc.jsonValue({ maxDepth: 4 }), texts);

test("the size of claims is that of their binary form", () => {
  fc.assert(
    fc.property(fc.dictionary(texts, values, { maxKeys: 6 }), (random) => {
      const claims = JSON.parse(JSON.stringify(random));
      const { byteLength } = toBinary(VerifyApiKeyResponseSchema, create(VerifyApiKeyResponseSchema, { claims }));
      expect(structFieldSize(claims)).toBe(byteLength);
    }),
    { numRuns: 500 },
  );
});
