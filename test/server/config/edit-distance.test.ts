import fc from "fast-check";
import { expect, test } from "vitest";
import { editDistance } from "../../../src/server/config/unknown-variables.ts";
import { table } from "../../support/conformance.ts";

const CASES = [
  ["", "", 0],
  ["", "abc", 3],
  ["kitten", "sitting", 3],
  ["PORT", "PROT", 2],
  ["HOST", "HOSTS", 1],
] as const;

test.each(table(CASES))("from %j to %j", (a, b, distance) => {
  expect([editDistance(a, b), editDistance(b, a)]).toEqual([distance, distance]);
});

test("satisfies the axioms of a metric", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 6 });
  fc.assert(
    fc.property(text, text, text, (a, b, c) => {
      expect(editDistance(a, b) === 0).toBe(a === b);
      expect(editDistance(a, c)).toBeLessThanOrEqual(editDistance(a, b) + editDistance(b, c));
    }),
  );
});
