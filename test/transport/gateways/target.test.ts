import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  isForwardAuth,
  FORWARD_AUTH_PATH as PATH,
  readTarget,
  targetOf,
} from "../../../src/transport/gateways/forward-auth-request.ts";
import { table } from "../../support/conformance.ts";

test.each(["", "?", "?a", ";a", "/", "/a?b", ";a/b"])("%j follows the path of the endpoint", (rest) => {
  expect(isForwardAuth(PATH + rest)).toBe(true);
});

test.each([
  ...["s", "%3Frequired_scopes=read", "%2f", "#a", ":verify", "\\a", "&a"].map((rest) => PATH + rest),
  ...["/v2alpha1//forwardAuth", "/v2alpha1/./forwardAuth", `/x/..${PATH}`, `/${PATH}`, PATH.toLowerCase()],
  ...[`http://localhost${PATH}`, `*${PATH}`, "*", "", PATH.slice(1)],
])("%j is not the endpoint", (target) => expect(isForwardAuth(target)).toBe(false));

const GOOD = table<readonly [string, object]>([
  ["", { requiredScopes: [], audience: undefined, clientUri: undefined, query: "" }],
  ["?", { requiredScopes: [], query: "" }],
  ["?required_scopes=read", { requiredScopes: ["read"], clientUri: undefined }],
  ["?required_scopes=a,b+c%20d&required_scopes=a&audience=x", { requiredScopes: ["a", "b", "c", "d"], audience: "x" }],
  [";required_scopes=a;audience=x", { requiredScopes: ["a"], audience: "x", clientUri: undefined }],
  [";required_scopes=a/b?c=d", { requiredScopes: ["a"], clientUri: "/b?c=d" }],
  ["/", { requiredScopes: [], clientUri: "/" }],
  // The client's path is never configuration.
  [
    ";required_scopes=a/;required_scopes=b?required_scopes=c&audience=d",
    { requiredScopes: ["a"], audience: undefined },
  ],
  [";required_scopes=a//..;/x", { requiredScopes: ["a"], clientUri: "//..;/x" }],
  // A gateway that appends to the first form: a scope that no key has.
  ["?required_scopes=a/b", { requiredScopes: ["a/b"], clientUri: undefined }],
  ["?required_scopes=a/b?required_scopes=", { requiredScopes: ["a/b?required_scopes="] }],
  ["?required_scopes=a%2526required_scopes%253D", { requiredScopes: ["a%26required_scopes%3D"] }],
]);

describe("reads", () => {
  test.each(GOOD)("%j", (rest, expected) => expect(readTarget(PATH + rest)).toMatchObject(expected));
});

const BAD = [
  // None is not the same as no scope: a template whose variable is not set.
  ...["?required_scopes=", "?required_scopes", "?required_scopes=,", "?required_scopes=%20", ";required_scopes=/a"],
  ...["?scopes=a", "?required_scope=a", "?Required_Scopes=a", "?required_scopes=a&b", "?a=b", ";a"],
  ...["?audience=a&audience=b", "?audience=", "?audience=a%20b", "?required_scopes=%ff", "?%zz=a"],
  ...["?required_scopes=%C3%A4", "?required_scopes=%00", "?required_scopes=a%0d%0a", "?audience=%0a"],
  `?required_scopes=${"a".repeat(256)}`,
  `?required_scopes=${Array.from({ length: 33 }, (_, place) => place).join()}`,
  // A client's path begins with a slash.
  ...[";required_scopes=a?b", ";required_scopes=a?/b"],
];

describe("rejects", () => {
  test.each(BAD)("%j", (rest) => {
    for (const read of [readTarget, targetOf])
      expect(() => read(PATH + rest)).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
  });
});

test("whatever a client's path and query are, they change nothing of what a prefix requires", () => {
  fc.assert(
    fc.property(fc.string(), (uri) => {
      const { requiredScopes, audience, clientUri } = targetOf(`${PATH};required_scopes=a,b;audience=x/${uri}`);
      expect({ requiredScopes, audience, clientUri }).toEqual({
        requiredScopes: ["a", "b"],
        audience: "x",
        clientUri: `/${uri}`,
      });
    }),
    { numRuns: 1000 },
  );
});

test("remembering a target changes nothing", () => {
  for (const [rest] of GOOD)
    for (let use = 0; use < 2; use++) expect(targetOf(PATH + rest)).toEqual(readTarget(PATH + rest));
});

test("configured targets are read once, up to a bound", () => {
  const read = (audience: string) => targetOf(`${PATH}?audience=${audience}`);
  const first = Array.from({ length: 1_000 }, (_, index) => read(`service-${index}`));
  const kept = first.map((one, index) => one === read(`service-${index}`));
  expect(kept[0]).toBe(true);
  expect(kept.filter(Boolean).length).toBeLessThanOrEqual(64);
});
