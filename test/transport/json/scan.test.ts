import fc from "fast-check";
import { expect, test } from "vitest";
import { countStrings } from "../../../src/transport/json/scan.ts";
import { MAX_JSON_DEPTH, MAX_JSON_VALUES } from "../../../src/transport/rest/json-text.ts";
import { text } from "./arbitrary-init.ts";

/** By walking the value. */
function stringsIn(value: unknown): number {
  if (typeof value === "string") return 1;
  if (typeof value !== "object" || value === null) return 0;
  const names = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce<number>((sum, member) => sum + stringsIn(member), names);
}

test("the strings of any JSON are counted", () => {
  const { json } = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)),
      fc.array(tie("json"), { maxLength: 4 }),
      fc.dictionary(text, tie("json"), { maxKeys: 4 }),
    ),
  }));
  fc.assert(
    fc.property(json, fc.nat(3), (value, indent) => {
      expect(countStrings(JSON.stringify(value, null, indent))).toBe(stringsIn(value));
    }),
    { numRuns: 1000 },
  );
});

test.each([
  ['"\\""', 1],
  ['"\\\\"', 1],
  ['["\\\\","\\\\\\"",""]', 3],
  ['"[[[,,,"', 1],
  [`"${"[".repeat(1000)}"`, 1],
  [`"${'\\"'.repeat(1000)}"`, 1],
  ["[".repeat(MAX_JSON_DEPTH), 0],
  ["[".repeat(MAX_JSON_DEPTH + 1), undefined],
  ["[]".repeat(MAX_JSON_DEPTH), 0],
  [`[${",".repeat(MAX_JSON_VALUES - 2)}]`, 0],
  [`[${",".repeat(MAX_JSON_VALUES - 1)}]`, undefined],
  [`[${'{"a":0},'.repeat(MAX_JSON_VALUES)}]`, undefined],
  ['""'.repeat(2 * MAX_JSON_VALUES + 2), undefined],
])("%.40j", (json, strings) => {
  expect(countStrings(json)).toBe(strings);
});
