import { describe, expect, test } from "vitest";
import { parsePathTemplate, readVariable } from "../../../src/transport/rest/path-template.ts";

const literal = (text: string) => ({ kind: "literal", text });
const single = { kind: "single" };
const rest = { kind: "rest" };

const valid = [
  ["/v1/items", [literal("v1"), literal("items")], undefined, []],
  ["/v1", [literal("v1")], undefined, []],
  ["/v1/jwks.json", [literal("v1"), literal("jwks.json")], undefined, []],
  ["/v1/items:batchGet", [literal("v1"), literal("items")], "batchGet", []],
  ["/v1/{name}", [literal("v1"), single], undefined, [{ fieldPath: "name", start: 1, end: 2 }]],
  ["/v1/{name}:rotate", [literal("v1"), single], "rotate", [{ fieldPath: "name", start: 1, end: 2 }]],
  ["/v1/{name=*}", [literal("v1"), single], undefined, [{ fieldPath: "name", start: 1, end: 2 }]],
  ["/{name=shelves/*}", [literal("shelves"), single], undefined, [{ fieldPath: "name", start: 0, end: 2 }]],
  ["/{kind=shelves}/x", [literal("shelves"), literal("x")], undefined, [{ fieldPath: "kind", start: 0, end: 1 }]],
  ["/v1/{name=**}", [literal("v1"), rest], undefined, [{ fieldPath: "name", start: 1, end: undefined }]],
  ["/v1/{a.b_c=x/**}:y", [literal("v1"), literal("x"), rest], "y", [{ fieldPath: "a.b_c", start: 1, end: undefined }]],
  ["/*/a%2Fb/**", [single, literal("a/b"), rest], undefined, []],
  [
    "/{a}/{b=x/*}",
    [single, literal("x"), single],
    undefined,
    [
      { fieldPath: "a", start: 0, end: 1 },
      { fieldPath: "b", start: 1, end: 3 },
    ],
  ],
] as const;

const invalid = [
  ...["", "v1", "/", "//", "/v1/", "/v1//x", "/v1:", "/v1/:verb", "/v1/x:", "/v1/a:b:c", "/v1/a:b/c"],
  ...["/{}", "/{=*}", "/{a", "/a}", "/{a}{b}", "/x{a}", "/{a}x", "/{a={b}}", "/{a=}", "/{a=x/}", "/{a=/x}", "/{1a}"],
  ...["/{a..b}", "/{a}/{a}", "/**/a", "/{a=**}/b", "/{a=**/b}", "/***", "/a*", "/a b", "/a%2", "/a?b", "/ä", "/{a b}"],
];

describe("path templates", () => {
  test.each(valid)("%s", (text, segments, verb, variables) => {
    expect(parsePathTemplate(text)).toEqual({ text, segments, verb, variables });
  });

  test.each(invalid)("refuses %j", (text) => {
    expect(() => parsePathTemplate(text)).toThrow(`malformed path template "${text}"`);
  });

  test("the samples are there", () => {
    expect(valid.length).toBeGreaterThan(10);
    expect(invalid.length).toBeGreaterThan(30);
  });
});

const values = [
  ["/{a}", ["x%2Fy%3A%20%C3%A4"], "x/y: ä"],
  ["/{a}", ["%00"], "\0"],
  ["/{a}", ["%252F"], "%2F"],
  ["/{a}", ["a+b"], "a+b"],
  ["/{a=x/*}", ["x", "y%2Fz%2f%20"], "x/y%2Fz%2f "],
  ["/{a=**}", ["x", "y%3A", "z%2F"], "x/y:/z%2F"],
  ["/{a=**}", [], ""],
  ["/{a=x/**}", ["x"], "x"],
  ["/{a}", ["%"], undefined],
  ["/{a}", ["%ff"], undefined],
  ["/{a=x/*}", ["x", "%2F%"], undefined],
] as const;

describe("variables", () => {
  test.each(values)("%s takes %j", (template, segments, value) => {
    const [variable] = parsePathTemplate(template).variables;
    if (variable === undefined) throw new Error("a template without variable");
    expect(readVariable(variable, segments)).toBe(value);
  });

  test("the samples are there", () => expect(values.length).toBeGreaterThan(10));
});
