import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CredentialPlace, findCredential } from "../../src/lib/request-credential.ts";
import { fieldsOf } from "../../src/transport/wire/headers.ts";
import { table } from "../support/conformance.ts";

const ALL: readonly CredentialPlace[] = [
  { kind: "bearer" },
  ...(["header", "cookie", "query"] as const).map((kind) => ({ kind, name: "x-key" })),
];

type Fields = readonly (readonly [string, string])[];

const find = (fields: Fields, originalUri?: string, places = ALL) =>
  findCredential(places, { header: (name) => fieldsOf(fields.flat(), name), originalUri });

const auth = (...values: string[]): Fields => values.map((value) => ["Authorization", value]);
const cookie = (...values: string[]): Fields => values.map((value) => ["Cookie", value]);
const key = (...values: string[]): Fields => values.map((value) => ["X-Key", value]);

describe("finds the credential in", () => {
  test.each(
    table<readonly [Fields, string | undefined]>([
      [auth("Bearer a.B_1-~+/="), undefined],
      [auth("bearer   a.B_1-~+/="), undefined],
      [auth("  BEARER a.B_1-~+/=  "), undefined],
      [[["AUTHORIZATION", "Bearer a.B_1-~+/="]], undefined],
      [key("a.B_1-~+/="), undefined],
      [[["x-KEY", " \ta.B_1-~+/="]], undefined],
      [cookie("x-key=a.B_1-~+/="), undefined],
      [cookie("a=b;x-key=a.B_1-~+/=; c"), undefined],
      [cookie("a=b", "x-key=a.B_1-~+/="), undefined],
      [[], "/?x-key=a.B_1-~%2B/="],
      [[], "/a/b?c=d&x%2dkey=a.B_1-~%2b%2F%3D&e"],
      // In several places, but one.
      [[...auth("Bearer a.B_1-~+/="), ...key("a.B_1-~+/="), ...cookie("x-key=a.B_1-~+/=")], "/?x-key=a.B_1-~%2B/="],
      // Another scheme is for the application, and an empty value is none.
      [[...auth("Basic dXNlcjpwYXNz"), ...key("a.B_1-~+/=")], undefined],
      [[...auth(""), ...key("a.B_1-~+/="), ...cookie("x-key=")], "/?x-key="],
    ]),
  )("%j %j", (fields, uri) => expect(find(fields, uri)).toBe("a.B_1-~+/="));
});

describe("finds none in", () => {
  test.each(
    table<readonly [Fields, string | undefined]>([
      [[], undefined],
      [[], "/"],
      [auth("Basic dXNlcjpwYXNz"), undefined],
      [auth("Token a"), undefined],
      [auth("Bearerx a"), undefined],
      [auth("a"), undefined],
      [[["Authorization_", "Bearer a"]], undefined],
      [[["Proxy-Authorization", "Bearer a"]], undefined],
      [[["X_Key", "a"]], undefined],
      [[["X-Key-2", "a"]], undefined],
      [cookie("X-Key=a; y-x-key=a; x-key2=a; x-key"), undefined],
      // Neither in the path, nor in a fragment, nor under another name.
      [[], "/x-key=a"],
      [[], "/a?X-KEY=a&x-key2=a&y=?x-key"],
      [[], "/a?%zz=a"],
    ]),
  )("%j %j", (fields, uri) => expect(find(fields, uri)).toBeUndefined());
});

describe("rejects", () => {
  test.each(
    table<readonly [string, Fields, string | undefined]>([
      ["twice", auth("Bearer a", "Bearer a"), undefined],
      ["twice", auth("Bearer a", ""), undefined],
      ["twice", auth("Bearer a", "Basic b"), undefined],
      [
        "twice",
        [
          ["authorization", "Bearer a"],
          ["AUTHORIZATION", "Bearer b"],
        ],
        undefined,
      ],
      ["twice", key("a", "a"), undefined],
      ["twice", key("a", ""), undefined],
      ["twice", cookie("x-key=a; x-key=b"), undefined],
      ["twice", cookie("x-key=a", "x-key=a"), undefined],
      ["twice", [], "/?x-key=a&x-key=b"],
      ["twice", [], "/?x-key=a&x%2Dkey="],
      ["different", [...auth("Bearer a"), ...key("b")], undefined],
      ["different", [...auth("Bearer a"), ...cookie("x-key=b")], undefined],
      ["different", key("a"), "/?x-key=b"],
      ["different", auth("Bearer a"), "/?x-key=A"],
      ["visible ASCII", key("a,b"), undefined],
      ["visible ASCII", key("a, b"), undefined],
      ["visible ASCII", key("a b"), undefined],
      ["visible ASCII", key("a\u0000"), undefined],
      ["visible ASCII", key("\u00e9"), undefined],
      ["visible ASCII", cookie("x-key=a,b"), undefined],
      ["visible ASCII", [], "/?x-key=a+b"],
      ["visible ASCII", [], "/?x-key=a%2Cb"],
      ["visible ASCII", [], "/?x-key=%00a"],
      ["visible ASCII", [], "/?x-key=%ff"],
      ["Bearer", auth("Bearer"), undefined],
      ["Bearer", auth("Bearer "), undefined],
      ["Bearer", auth("Bearer\ta"), undefined],
      ["Bearer", auth("Bearer a b"), undefined],
      ["Bearer", auth("Bearer a, Bearer b"), undefined],
      ["Bearer", auth("Bearer a,Basic b"), undefined],
      ["Bearer", auth("Basic b, Bearer a"), undefined],
      ["Bearer", auth("Basic b,bearer a"), undefined],
      ["Bearer", auth("Bearer \u00e9"), undefined],
    ]),
  )("%s: %j %j", (problem, fields, uri) => {
    const found = find(fields, uri);
    expect(found).toMatchObject({ problem: expect.stringContaining(problem) });
  });
});

test("a place that is not configured has no effect", () => {
  const fields: Fields = [...auth("Bearer a"), ...key("b"), ...cookie("x-key=c; x-key=d")];
  expect(find(fields, "/?x-key=e", [{ kind: "bearer" }])).toBe("a");
  expect(find(fields, "/?x-key=e", [{ kind: "header", name: "x-key" }])).toBe("b");
  expect(find(fields, "/?x-key=e", [{ kind: "query", name: "x-key" }])).toBe("e");
  expect(find(fields, "/?x-key=e", [])).toBeUndefined();
});

const part = fc.string({ unit: fc.constantFrom(..."abX ,=;\"'&%?+\t\u0000\u00e9"), maxLength: 12 });

test("a credential is always one that a client has written in one piece, and no problem quotes one", () => {
  fc.assert(
    fc.property(fc.array(part), fc.array(part), fc.array(part), part, (bearers, keys, cookies, query) => {
      const fields = [...bearers.flatMap((one) => auth(`Bearer ${one}`)), ...key(...keys), ...cookie(...cookies)];
      const found = find(fields, `/?${query}`);
      if (typeof found === "string") {
        expect(found).toMatch(/^[!-~]+$/);
        expect(found).not.toContain(",");
        expect(
          [...bearers, ...keys, ...cookies, decodeURIComponent(query.replaceAll("%", "%25"))].join("\n"),
        ).toContain(found);
      } else if (found !== undefined)
        expect([NAMES.includes(found.problem), found.problem]).toEqual([true, found.problem]);
    }),
    { numRuns: 3000 },
  );
});

/** Every message, so that none depends on the request. */
const NAMES = [
  "the same credential field is sent twice",
  "the request has two different credentials",
  "a credential must contain only visible ASCII characters and no comma",
  "the Authorization header must have the form Bearer <credential>",
];
