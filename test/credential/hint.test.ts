import fc from "fast-check";
import { expect, test } from "vitest";
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issuedSecretHint, rawKeyHint } from "../../src/credential/hint.ts";
import vectors from "../vectors/credential.json" with { type: "json" };

test.each(vectors.valid)("$secret is shown as $hint", ({ secret, hint }) => {
  expect(issuedSecretHint(parseSecretPrefix(secret.slice(0, secret.indexOf("_"))), secret)).toBe(hint);
});

test.each([
  { rawKey: "sk_live_0123456789abcdef", hint: "…cdef" },
  { rawKey: "0123456789abcdefghij", hint: "…ghij" },
  { rawKey: "0123456789abcdefghi", hint: "" },
  { rawKey: "x", hint: "" },
  { rawKey: "", hint: "" },
  { rawKey: "🔑".repeat(20), hint: "…🔑🔑🔑🔑" },
  { rawKey: "🔑".repeat(19), hint: "" },
])("the hint of the raw key $rawKey is $hint", ({ rawKey, hint }) => {
  expect(rawKeyHint(rawKey)).toBe(hint);
});

test("the hint of any raw key of twenty characters or more is its last four", () => {
  const units = fc.constantFrom("a", "\u00e9", "\u{1f511}", "\ud83d", "\udd11");
  const rawKeys = fc.array(units, { minLength: 10, maxLength: 50 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(rawKeys, (rawKey) => {
      const characters = Array.from(rawKey);
      expect(rawKeyHint(rawKey)).toBe(characters.length < 20 ? "" : `…${characters.slice(-4).join("")}`);
    }),
    { numRuns: 1000 },
  );
});
