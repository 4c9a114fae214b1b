import fc from "fast-check";
import { expect, test } from "vitest";
import { syntaxErrorPosition } from "../../../../src/transport/wire/json/syntax-error.ts";

const at = (line: number, column: number) => ` at line ${line}, column ${column}`;

const FAULTS: readonly (readonly [text: string, position: string])[] = [
  ["", at(1, 1)],
  ["{", at(1, 2)],
  ['{"a": x}', at(1, 7)],
  ['{"a": 1,}', at(1, 9)],
  ['{"a": 1\n "b": 2}', at(2, 2)],
  ['{\n  "a": "b",\n  c: 1\n}', at(3, 3)],
  ["[1, 2", at(1, 6)],
  ["[1 2]", at(1, 4)],
  ["[1}", at(1, 3)],
  ["{} {}", at(1, 4)],
  ['{"a" 1}', at(1, 6)],
  ["{'a': 1}", at(1, 2)],
  ['["\u{1f511}", x]', at(1, 7)],
  ["[01]", at(1, 3)],
  ['["a\nb"]', at(1, 4)],
  ['"\\x"', at(1, 3)],
  ["nul", at(1, 4)],
  ["[trux]", at(1, 5)],
  ['["in JSON at position 3", nulx]', at(1, 30)],
  [`[${"1,".repeat(32_000)}x]`, at(1, 64_002)],
  [`[${"1,".repeat(40_000)}x]`, ""],
];

test.each(FAULTS)("%j is not JSON%s", (text, position) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(syntaxErrorPosition(text)).toBe(position);
});

/** JSON in which a character is replaced, added or removed. */
const damaged = fc
  .tuple(fc.json(), fc.nat(), fc.nat(1), fc.constantFrom("", ...'{}[],:"\\ 0-.ex\n\u00e9'))
  .map(([text, place, removed, put]) => {
    const offset = place % (text.length + 1);
    return text.slice(0, offset) + put + text.slice(offset + removed);
  });

test("finds a fault in exactly the texts that JSON.parse rejects", () => {
  fc.assert(
    fc.property(damaged, (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect(syntaxErrorPosition(text) === "").toBe(isJson);
    }),
    { numRuns: 2000 },
  );
});
