import { expect, test } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { MACAROON_MAX_CLAIMS, type MacaroonInput, mintMacaroon } from "../../../src/token/macaroon/mint.ts";
import { parseMacaroon } from "../../../src/token/macaroon/text.ts";
import { verifyMacaroon } from "../../../src/token/macaroon/verify.ts";
import { ISSUER, input, NOW, RING } from "./samples.ts";

test("the caveats are readable and in order", () => {
  const { token } = mintMacaroon(input({ claims: { team: "blue", level: { a: [1] } } }));
  const caveats = parseMacaroon(token).caveats.map(({ identifier }) => Buffer.from(identifier).toString());
  expect(caveats).toEqual([
    "time < 2026-01-02T04:04:05.500Z",
    "scope = orders.read orders.write",
    'claim team = "blue"',
    'claim level = {"a":[1]}',
  ]);
});

test("the audience follows the scopes", () => {
  const { token } = mintMacaroon(input({ audience: ["orders", "https://billing.example/"] }));
  const caveats = parseMacaroon(token).caveats.map(({ identifier }) => Buffer.from(identifier).toString());
  expect(caveats.slice(1)).toEqual([
    "scope = orders.read orders.write",
    "audience = orders https://billing.example/",
    'claim team = "blue"',
  ]);
});

test("rounds the issue time down to the second, not the expiry", () => {
  const { token, expireTime } = mintMacaroon(input({ issueTime: NOW + 499, expireTime: NOW + 1 }));
  expect(expireTime).toBe(NOW + 1);
  expect(verifyMacaroon(token, { keys: RING, issuer: ISSUER, now: NOW })).toMatchObject({
    ok: true,
    token: { issueTime: NOW - 500, expireTime: NOW + 1 },
  });
});

test("the longest macaroon still verifies", () => {
  const many = Object.fromEntries(Array.from({ length: MACAROON_MAX_CLAIMS }, (_, i) => [`c${i}`, i]));
  const { token } = mintMacaroon(input({ claims: many, scopes: ["s".repeat(4000)] }));
  expect(verifyMacaroon(token, { keys: RING, issuer: ISSUER, now: NOW })).toMatchObject({
    ok: true,
    token: { claims: many },
  });
});

test.each([
  ["an empty claim name", { claims: { "": 1 } }, "custom_claims"],
  ["a space in a claim name", { claims: { "a b": 1 } }, "custom_claims"],
  ["a claim name that would parse differently", { claims: { "a = 1 ": 1 } }, "custom_claims"],
  ["a lone surrogate in a claim name", { claims: { "a\ud800": 1 } }, "custom_claims"],
  [
    "too many claims",
    { claims: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`c${i}`, i])) },
    "custom_claims",
  ],
])("%s is an invalid argument", (_, fields, field) => {
  const error = refusal(fields);
  expect(error).toBeInstanceOf(KeyholdError);
  expect(error).toMatchObject({ code: "INVALID_ARGUMENT", violations: [{ field }] });
});

test.each<[string, Partial<MacaroonInput>]>([
  ["a scope with a space", { scopes: ["a b"] }],
  ["an audience with a space", { audience: ["a b"] }],
  ["an audience of nobody", { audience: [] }],
  ["an empty scope", { scopes: [""] }],
  ["an empty token id", { tokenId: "" }],
  ["a key id that is not a UUID", { keyId: "1" }],
  ["a version below zero", { secretVersion: -1 }],
  ["an invalid time", { issueTime: Number.NaN }],
  ["an invalid expiry", { expireTime: Number.NaN }],
  ["an expiry after the year 9999", { expireTime: Date.UTC(10_000) }],
])("%s is an internal error", (_, fields) => {
  expect(refusal(fields)).toBeInstanceOf(RangeError);
});

function refusal(fields: Partial<MacaroonInput>): unknown {
  try {
    return mintMacaroon(input(fields));
  } catch (error) {
    return error;
  }
}
