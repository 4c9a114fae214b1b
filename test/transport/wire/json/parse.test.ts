import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { INVALID_REASONS, KeyholdError } from "../../../../src/domain/errors.ts";
import { MAX_JSON_DEPTH, parseJson as parseWithin, valueLimits } from "../../../../src/transport/wire/json/parse.ts";

const limits = valueLimits(2 ** 22);
const parseJson = (text: Uint8Array) => parseWithin(text, limits);
const bytes = (text: string) => new TextEncoder().encode(text);
const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

const valid = [
  ...'null true 0 -1.5e3 "" "a" {} [] [[],{}] "\\u0000" "\\ud800"'.split(" "),
  ...[
    '{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}',
    ' { "a" : "}{,\\"a\\":" , "b" : [ 1 , "a" ] } ',
    '{"":0,"A":0,"a":0}',
  ],
  ...[
    '{"a":"\\\\","b":"\\\\\\""}',
    '["a","a"]',
    '{"a":"a","b":"a"}',
    '{"a":["b"],"b":{"b":[]}}',
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":{"b":2}}',
    '{"__proto__":1,"__proto__":2}',
    nested(MAX_JSON_DEPTH),
  ],
];

const NOT_JSON: string = expect.stringMatching(/^is not JSON(?: at line \d+, column \d+)?$/);

const invalid: readonly (readonly [text: string | Uint8Array, field: string, description: string])[] = [
  ...[
    "",
    " ",
    "{",
    "[1,]",
    "{'a':1}",
    '{"a"}',
    '"a',
    '"\n"',
    '{"a":1}x',
    "NaN",
    "01",
    "{a:1}",
    '{"\\x":1}',
    "\\",
    "]",
    "}{",
    "{},{}",
    "[],1",
    ",",
  ].map((text) => [text, "body", NOT_JSON] as const),
  [new Uint8Array([0x22, 0xff, 0x22]), "body", "is not UTF-8"],
  [new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), "body", "is not UTF-8"],
  [nested(MAX_JSON_DEPTH + 1), "body", "is nested deeper than 100"],
  ['{"a":'.repeat(101), "body", "is nested deeper than 100"],
  ["[".repeat(1_000_000), "body", "is nested deeper than 100"],
];

const at = (line: number, column: number) => ` at line ${line}, column ${column}`;

const positions = [
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
] as const;

/** Returns JSON with that many values: the array and its items. */
const long = (values: number) => `[${"0,".repeat(values - 2)}0]`;

const wide = (members: number) => `{${Array.from({ length: members }, (_, i) => `"k${i}":0`).join(",")}}`;

describe("JSON", () => {
  test.each(valid)("%s", (text) => {
    expect(parseJson(bytes(text))).toEqual(JSON.parse(text));
  });

  test.each(positions)("%j is not JSON%s", (text, position) => {
    const violations = [expect.objectContaining({ description: `is not JSON${position}` })];
    expect(() => parseJson(bytes(text))).toThrow(expect.objectContaining({ violations }));
  });

  test.each(invalid)("refuses %.40j", (text, field, description) => {
    const parse = () => parseJson(typeof text === "string" ? bytes(text) : text);
    expect(parse).toThrow(KeyholdError);
    const violations = [{ field, description, reason: expect.toBeOneOf([...INVALID_REASONS]) }];
    expect(parse).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT", violations }));
  });

  test("has a maximum number of values", () => {
    expect(parseJson(bytes(long(limits.values)))).toHaveLength(limits.values - 1);
    expect(() => parseJson(bytes(long(limits.values + 1)))).toThrow("body: has more than 250000 values");
  });

  test("has a maximum number of objects and members", () => {
    const objects = Math.floor(limits.members / (limits.membersOfOne + 1));
    const many = Array.from({ length: objects }, () => wide(limits.membersOfOne)).join(",");
    expect(parseJson(bytes(`[${many}]`))).toHaveLength(objects);
    expect(() => parseJson(bytes(`[${many},${wide(limits.membersOfOne)}]`))).toThrow("has more than 100000 members");
  });

  test("has a maximum number of members per object", () => {
    const fitting = `[[${wide(limits.membersOfOne)}],${wide(limits.membersOfOne)}]`;
    expect(parseJson(bytes(fitting))).toEqual(JSON.parse(fitting));
    for (const text of [wide(limits.membersOfOne + 1), `{"a":${wide(2)},${wide(limits.membersOfOne).slice(1)}`])
      expect(() => parseJson(bytes(text))).toThrow("body: has an object with more than 1000 members");
  });

  test("is not measured by the punctuation in strings", () => {
    const text = JSON.stringify([`\\\\"${'{"a":[,]}'.repeat(limits.values)}`, "\\"]);
    expect(parseJson(bytes(text))).toEqual(JSON.parse(text));
  });

  test("has lower limits outside of batches", () => {
    const ofOne = valueLimits(2 ** 20);
    expect(() => parseWithin(bytes(long(ofOne.values + 1)), ofOne)).toThrow("more than 16384 values");
  });

  test("__proto__ is an ordinary name", () => {
    const value = parseJson(bytes('{"__proto__":{"a":1}}'));
    expect(Object.keys(Object(value))).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  test("the output of JSON.stringify is parsed back", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" }), fc.nat(4), (value, indent) => {
        expect(parseJson(bytes(JSON.stringify(value, null, indent)))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("the list of samples is complete", () => {
    expect(valid.length).toBeGreaterThan(15);
    expect(invalid.length).toBeGreaterThan(20);
  });
});
