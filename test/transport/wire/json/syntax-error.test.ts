import { expect, test } from "vitest";
import { syntaxErrorPosition } from "../../../../src/transport/wire/json/syntax-error.ts";

const at = (line: number, column: number) => ` at line ${line}, column ${column}`;

test.each([
  ["{", at(1, 2)],
  ['{"a": 1,}', at(1, 9)],
  ['{"a": 1\n "b": 2}', at(2, 2)],
  ['{\n  "a": "b",\n  c: 1\n}', at(3, 3)],
  ["[1, 2", at(1, 6)],
  ["{} {}", at(1, 4)],
  ["{'a': 1}", at(1, 2)],
  ['["a\nb"]', at(1, 4)],
  ['"in JSON at position 3 (line 1 column 2)', at(1, 41)],
  ["", ""],
  ['{"a": x}', ""],
  ['[" JSON at position 3 (line 1 column 2)", x', ""],
])("%j is not JSON%s", (text, position) => {
  expect(syntaxErrorPosition(text)).toBe(position);
});

test("JSON has no fault", () => {
  expect(syntaxErrorPosition('{"a": 1}')).toBe("");
});
