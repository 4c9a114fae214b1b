import { describe, expect, test } from "vitest";
import { parsePathTemplate } from "../../../src/transport/rest/path-router.ts";

const anything = undefined;

const valid = [
  ["/v1/items", ["v1", "items"], undefined, []],
  ["/v1/jwks.json", ["v1", "jwks.json"], undefined, []],
  ["/v1/items:batchGet", ["v1", "items"], "batchGet", []],
  ["/v1/{name}", ["v1", anything], undefined, [{ fieldPath: "name", segment: 1 }]],
  ["/v1/{name}:rotate", ["v1", anything], "rotate", [{ fieldPath: "name", segment: 1 }]],
  ["/v1/{kind=shelves}/x", ["v1", "shelves", "x"], undefined, [{ fieldPath: "kind", segment: 1 }]],
  [
    "/v1/{a}/{b.c_d}",
    ["v1", anything, anything],
    undefined,
    [
      { fieldPath: "a", segment: 1 },
      { fieldPath: "b.c_d", segment: 2 },
    ],
  ],
] as const;

const invalid = [
  ...["", "v1", "/", "//", "/v1", "/v1/", "/v1//x", "/v1:", "/v1/:verb", "/v1/x:", "/v1/a:b:c", "/v1/a:b/c"],
  ...["/v1/{}", "/v1/{=x}", "/v1/{a", "/v1/a}", "/v1/{a}{b}", "/v1/x{a}", "/v1/{a}x", "/v1/{a={b}}", "/v1/{a=}"],
  ...["/v1/{1a}", "/v1/{a..b}", "/v1/{a}/{a}", "/v1/a b", "/v1/a%2", "/v1/a?b", "/v1/ä", "/v1/{a b}", "/{a}/b"],
];

/** Valid by google/api/http.proto, but not supported. */
const unsupported = ["/v1/*", "/v1/**", "/v1/{a=*}", "/v1/{a=**}", "/v1/{a=x/*}", "/v1/{a=x/y}", "/v1/a%2Fb"];

describe("path templates", () => {
  test.each(valid)("%s", (text, segments, verb, variables) => {
    expect(parsePathTemplate(text)).toEqual({ text, segments, verb, variables });
  });

  test.each([...invalid, ...unsupported])("refuses %j", (text) => {
    expect(() => parsePathTemplate(text)).toThrow(`malformed or unsupported path template "${text}"`);
  });

  test("the list of samples is complete", () => {
    expect(valid.length).toBeGreaterThan(6);
    expect(invalid.length).toBeGreaterThan(25);
  });
});
