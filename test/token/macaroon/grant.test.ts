import fc from "fast-check";
import { expect, test } from "vitest";
import type { Grant } from "../../../src/token/macaroon/caveat-kinds.ts";
import { formatGrant, parseGrant, restrictGrant } from "../../../src/token/macaroon/grant.ts";
import samples from "../../vectors/macaroon-caveat.json" with { type: "json" };
import { bytes, claims, scopes, times } from "./samples.ts";

const TIME = "time < 2026-01-02T03:04:05Z";
const SCOPE = "scope = a b";
const GRANT: Grant = { expireTime: Date.parse("2026-01-02T03:04:05Z"), scopes: ["a", "b"], claims: {} };

/** The caveats that a server would mint for a sample. */
const AS_MINTED = [
  (text: string) => [text, SCOPE],
  (text: string) => [TIME, text],
  (text: string) => [TIME, SCOPE, text],
];

test.each(samples.valid)("reads $text", ({ text, says }) => {
  const [grant, ...others] = AS_MINTED.map((conditions) => parse(conditions(text))).filter(
    (found) => found !== undefined,
  );
  expect(others).toEqual([]);
  expect(grant).toEqual({
    expireTime: says.time === undefined ? GRANT.expireTime : Date.parse(says.time),
    scopes: says.scopes ?? GRANT.scopes,
    claims: says.claim === undefined ? {} : Object.fromEntries([says.claim]),
    ...("audience" in says && { audience: says.audience }),
  });
});

test.each(samples.invalid)("rejects %j", (text) => {
  expect(restrictGrant({ ...GRANT, claims: { a: 1 } }, bytes(text))).toBeUndefined();
  for (const conditions of AS_MINTED) expect(parse(conditions(text))).toBeUndefined();
});

test("rejects what is not UTF-8", () => {
  const condition = Buffer.concat([bytes("scope = a"), Uint8Array.of(0xff)]);
  expect(restrictGrant(GRANT, condition)).toBeUndefined();
  expect(parseGrant([bytes(TIME), condition])).toBeUndefined();
});

test.each([
  ["nothing", []],
  ["time alone", [TIME]],
  ["scope alone", [SCOPE]],
  ["another order", [SCOPE, TIME]],
  ["a duplicate time", [TIME, SCOPE, TIME]],
  ["a duplicate scope", [TIME, SCOPE, SCOPE]],
  ["two audiences", [TIME, SCOPE, "audience = a b", "audience = a"]],
  ["an audience before the scope", [TIME, "audience = a", SCOPE]],
  ["an audience after a claim", [TIME, SCOPE, "claim a = 1", "audience = a"]],
  ["a claim before the scope", [TIME, "claim a = 1", SCOPE]],
  ["a duplicate claim", [TIME, SCOPE, "claim a = 1", "claim a = 2"]],
  ["a duplicate, equal claim", [TIME, SCOPE, "claim a = 1", "claim a = 1"]],
])("the server does not mint %s", (_, conditions) => {
  expect(parse(conditions)).toBeUndefined();
});

test("parse inverts format", () => {
  fc.assert(
    fc.property(grants, (grant) => {
      expect(parseGrant(formatGrant(grant))).toEqual(grant);
    }),
  );
});

test("a holder's claim must equal a minted one, in any JSON form", () => {
  const grant = { ...GRANT, claims: { n: 100, o: { x: [1, null], y: "z" } } };
  expect(restrictGrant(grant, bytes("claim n = 1e2"))).toEqual(grant);
  expect(restrictGrant(grant, bytes('claim o = {"y": "\\u007a", "x": [1.0, null]}'))).toEqual(grant);
  for (const other of [
    "claim n = 101",
    'claim n = "100"',
    'claim o = {"x":[1,null]}',
    "claim o = null",
    "claim m = 100",
  ]) {
    expect(restrictGrant(grant, bytes(other)), other).toBeUndefined();
  }
});

test("names of Object.prototype are claims only if minted", () => {
  expect(restrictGrant(GRANT, bytes("claim __proto__ = {}"))).toBeUndefined();
  expect(restrictGrant(GRANT, bytes("claim toString = null"))).toBeUndefined();
  const minted = parse([TIME, SCOPE, 'claim __proto__ = {"a":1}']);
  if (minted === undefined) throw new Error("refused");
  expect(Object.getOwnPropertyNames(minted.claims)).toEqual(["__proto__"]);
  expect(restrictGrant(minted, bytes('claim __proto__ = {"a":1}'))).toEqual(minted);
  expect(restrictGrant(minted, bytes('claim __proto__ = {"a":2}'))).toBeUndefined();
});

test("compares the deepest claim that fits", () => {
  const deep = "[".repeat(1500) + "]".repeat(1500);
  const minted = parse([TIME, SCOPE, `claim a = ${deep}`]);
  if (minted === undefined) throw new Error("refused");
  expect(restrictGrant(minted, bytes(`claim a = ${deep}`)) === minted).toBe(true);
  expect(restrictGrant(minted, bytes(`claim a = [${deep}]`))).toBeUndefined();
});

test.each([
  ["nobody, if the server named no service", undefined, ["audience = a"], []],
  ["fewer services", ["a", "b"], ["audience = b"], ["b"]],
  ["the services that all name", ["a", "b"], ["audience = a b", "audience = b c"], ["b"]],
  ["no service at all", ["a"], ["audience = b"], []],
  ["no service, whatever follows", ["a"], ["audience = b", "audience = a b"], []],
] as const)("a holder's audience leaves %s", (_, audience, added, left) => {
  const grant: Grant = { ...GRANT, ...(audience !== undefined && { audience }) };
  const restricted = added.reduce((one, text) => must(restrictGrant(one, bytes(text))), grant);
  expect(restricted).toEqual({ ...GRANT, audience: left });
});

const grants = fc.oneof(
  fc.record({ expireTime: times, scopes: fc.array(scopes), claims }),
  fc.record({ expireTime: times, scopes: fc.array(scopes), claims, audience: fc.array(scopes, { minLength: 1 }) }),
);

function must(grant: Grant | undefined): Grant {
  if (grant === undefined) throw new Error("refused");
  return grant;
}

function parse(conditions: readonly string[]): Grant | undefined {
  return parseGrant(conditions.map(bytes));
}
