import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { equalJson, type JsonValue } from "../../src/lib/json.ts";

/** From few values, so that two are often equal or nearly so. */
const values: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, 0, 1, "", "0", "1"),
    fc.array(tie("value"), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom("0", "1", "__proto__"), tie("value"), { noNullPrototype: true }),
  ),
})).value;

test("agrees with isDeepStrictEqual", () => {
  fc.assert(
    fc.property(values, values, (a, b) => {
      expect(equalJson(a, b)).toBe(isDeepStrictEqual(a, b));
      expect(equalJson(a, JSON.parse(JSON.stringify(a)))).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ["[]", "{}"],
  ["[1]", '{"0":1}'],
  ["[1]", "[1,1]"],
  ["[1,2]", "[2,1]"],
  ['{"a":1}', '{"a":1,"b":1}'],
  ['{"a":1,"c":1}', '{"a":1,"b":1}'],
  ['{"a":{"b":[0]}}', '{"a":{"b":[1]}}'],
  ['{"__proto__":1}', "{}"],
  ["1", '"1"'],
  ["null", "false"],
  ["null", "{}"],
])("%s and %s are not equal", (a, b) => {
  expect(equalJson(JSON.parse(a), JSON.parse(b))).toBe(false);
  expect(equalJson(JSON.parse(b), JSON.parse(a))).toBe(false);
});

test("ignores the order of members", () => {
  expect(equalJson({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 })).toBe(true);
});

test("compares deeply nested values", () => {
  const deep = (end: string) => JSON.parse("[".repeat(10_000) + end + "]".repeat(10_000));
  expect(equalJson(deep("1"), deep("1"))).toBe(true);
  expect(equalJson(deep("1"), deep("2"))).toBe(false);
});
