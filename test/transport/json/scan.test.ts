import type { DescMessage } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DeriveTokenRequestSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { BatchCreateImportedApiKeysRequestSchema } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { INVALID_REASONS, KeyholdError } from "../../../src/domain/errors.ts";
import { parseLongJson, parseJson as parseWithin } from "../../../src/transport/wire/json/reader.ts";
import { MAX_JSON_DEPTH, valueLimits } from "../../../src/transport/wire/json/scan.ts";
import { syntaxErrorPosition } from "../../../src/transport/wire/json/syntax-error.ts";
import { character } from "../rest/characters.ts";

const limits = valueLimits(2 ** 24);
const parseJson = (text: Uint8Array, desc?: DescMessage) => parseWithin(text, limits, desc);
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
    nested(MAX_JSON_DEPTH),
  ],
];

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
  ].map((text) => [text, "body", `is not JSON${syntaxErrorPosition(text)}`] as const),
  [new Uint8Array([0x22, 0xff, 0x22]), "body", "is not UTF-8"],
  [new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22]), "body", "is not UTF-8"],
  ['{"a":1,"a":1}', "a", "is given twice"],
  ['{"a":1,"\\u0061":2}', "a", "is given twice"],
  ['{"":1,"":2}', '[""]', "is given twice"],
  ['{"x":[0,{"y":{"b c":1,"d":"\\"","b c":2}}]}', 'x[1].y["b c"]', "is given twice"],
  ['[[1,2],{"a":[],"a":[]}]', "[1].a", "is given twice"],
  ['{"__proto__":1,"__proto__":2}', "__proto__", "is given twice"],
  [nested(MAX_JSON_DEPTH + 1), "body", "is nested deeper than 100"],
  ['{"a":'.repeat(101), "body", "is nested deeper than 100"],
  ["[".repeat(1_000_000), "body", "is nested deeper than 100"],
];

/** Returns JSON with that many values: the array and its items. */
const long = (values: number) => `[${"0,".repeat(values - 2)}0]`;

const wide = (members: number) => `{${Array.from({ length: members }, (_, i) => `"k${i}":0`).join(",")}}`;

describe("an unknown field is refused at its name, whatever follows", () => {
  const BATCH = BatchCreateImportedApiKeysRequestSchema;
  const DERIVE = DeriveTokenRequestSchema;
  const unknown: readonly (readonly [DescMessage, string, string])[] = [
    [BATCH, '{"nothing":', "nothing"],
    [BATCH, '{"requests":[{"rawKey":"a"},{"raw_key":"a","a b":', 'requests[1]["a b"]'],
    [BATCH, '{"requests":[{"metadata":{"nothing":"a"},"nothing":', "requests[0].nothing"],
    [DERIVE, '{"custom_claims":{"nothing":{"a":[{"b":1}]}},"customClaim":', "customClaim"],
  ];
  test.each(unknown)("%s %s", (desc, text, field) => {
    expect(() => parseJson(bytes(text), desc)).toThrow(`${field}: is no known field`);
  });

  test.each(['{credential: "a-secret"}', '{\0"a-secret"}', '{1,"credential":"a"} "a-secret"'])(
    "%j is not JSON",
    (text) => {
      expect(() => parseJson(bytes(text), DERIVE)).toThrow("body: is not JSON");
    },
  );

  test("names in a value that is not a message are free", () => {
    const text = '{"requests":[{"metadata":{"nothing":"a"},"raw_key":{"b":1},"scopes":[{"c":1}]}]}';
    expect(parseJson(bytes(text), BATCH)).toEqual(JSON.parse(text));
  });
});

describe("JSON", () => {
  test.each(valid)("%s", (text) => {
    expect(parseJson(bytes(text))).toEqual(JSON.parse(text));
  });

  test.each(invalid)("refuses %.40j", (text, field, description) => {
    const parse = () => parseJson(typeof text === "string" ? bytes(text) : text);
    expect(parse).toThrow(KeyholdError);
    const violations = [{ field, description, reason: expect.toBeOneOf([...INVALID_REASONS]) }];
    expect(parse).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT", violations }));
  });

  test("is the same when it is scanned character by character", async () => {
    const readSlowly = (text: Uint8Array) => parseLongJson(text, limits, undefined, 1);
    for (const text of valid) expect(await readSlowly(bytes(text))).toEqual(JSON.parse(text));
    for (const [text, field, description] of invalid) {
      const reading = readSlowly(typeof text === "string" ? bytes(text) : text);
      await expect(reading).rejects.toMatchObject({ violations: [{ field, description }] });
    }
  });

  test("has a maximum number of values", () => {
    expect(parseJson(bytes(long(limits.values)))).toHaveLength(limits.values - 1);
    expect(() => parseJson(bytes(long(limits.values + 1)))).toThrow("body: has more than 250000 values");
  });

  test("has a maximum number of members", () => {
    const objects = limits.members / limits.membersOfOne;
    const many = Array.from({ length: objects }, () => wide(limits.membersOfOne)).join(",");
    expect(parseJson(bytes(`[${many}]`))).toHaveLength(objects);
    expect(() => parseJson(bytes(`[${many},{"a":1}]`))).toThrow("body: has more than 100000 members");
  });

  test("has a maximum number of members per object", () => {
    expect(Object.keys(Object(parseJson(bytes(wide(limits.membersOfOne)))))).toHaveLength(limits.membersOfOne);
    expect(() => parseJson(bytes(wide(limits.membersOfOne + 1)))).toThrow(
      "body: has an object of more than 1000 members",
    );
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

  test("a duplicate name is refused at any depth", () => {
    const name = fc.string({ unit: character, maxLength: 5 });
    const members = fc.uniqueArray(fc.tuple(name, fc.jsonValue({ maxDepth: 2 })), {
      selector: ([key]) => key,
      minLength: 1,
    });
    fc.assert(
      fc.property(members, fc.nat(), fc.jsonValue(), fc.nat(3), (object, choice, value, depth) => {
        const twin = object[choice % object.length]?.[0];
        const pairs = [...object, [twin, value]].map(
          ([key, member]) => `${JSON.stringify(key)}: ${JSON.stringify(member)}`,
        );
        const text = `${'{"x": ["", '.repeat(depth)}{${pairs}}${"]}".repeat(depth)}`;
        expect(() => parseJson(bytes(text))).toThrow("is given twice");
      }),
    );
  });

  test("the list of samples is complete", () => {
    expect(valid.length).toBeGreaterThan(15);
    expect(invalid.length).toBeGreaterThan(20);
  });
});
