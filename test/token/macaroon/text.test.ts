import fc from "fast-check";
import { expect, test } from "vitest";
import { MACAROON_MAX_SIZE, MacaroonFormatError } from "../../../src/token/macaroon/format.ts";
import { formatMacaroon, looksLikeMacaroon, parseMacaroon } from "../../../src/token/macaroon/text.ts";
import { anyText } from "../../lib/any-text.ts";
import { macaroons } from "./samples.ts";

const macaroon = {
  location: undefined,
  identifier: new Uint8Array([105]),
  caveats: [],
  signature: new Uint8Array(32),
};
/** 40 bytes, so that its last character has four unused bits. */
const text = formatMacaroon(macaroon);

const NO_MACAROONS = [
  ["the empty text", ""],
  ["an issued secret", `kh_v1_${"0".repeat(94)}`],
  ["a JWT", "eyJhbGciOiJFZERTQSJ9.e30.AA"],
  ["a raw key", "sk_live_abcdefghijklmnop"],
  ["a raw key that begins like a macaroon", "AgEhbGxsbGxsbGxsbGxsbGxsbGxs"],
  ["padding", `${text}==`],
  ["a space before", ` ${text}`],
  ["a newline after", `${text}\n`],
  ["a stray bit in the last character", `${text.slice(0, -1)}B`],
  ["one character fewer", text.slice(0, -1)],
  ["one character more", `${text}A`],
  [
    "base64 instead of base64url",
    formatMacaroon({ ...macaroon, signature: new Uint8Array(32).fill(0xff) }).replaceAll("_", "/"),
  ],
  ["another version", `AQ${text.slice(2)}`],
  ["a character that is not ASCII", `${text.slice(0, -1)}Ａ`],
  ["a macaroon in V1", "MDAxMGlkZW50aWZpZXIgaQo"],
] as const;

test.each(NO_MACAROONS)("is not a macaroon: %s", (_, other) => {
  expect(looksLikeMacaroon(other)).toBe(false);
  expect(() => parseMacaroon(other)).toThrow(MacaroonFormatError);
});

test("the sample is a macaroon", () => {
  expect(looksLikeMacaroon(text)).toBe(true);
  expect(text).toMatch(/A$/);
});

test("parses and recognizes every formatted macaroon", () => {
  fc.assert(
    fc.property(macaroons, (any) => {
      const printed = formatMacaroon(any);
      expect(parseMacaroon(printed)).toEqual(any);
      expect(looksLikeMacaroon(printed)).toBe(true);
    }),
  );
});

test("the maximum text length is that of the longest macaroon", () => {
  const overhead = 40;
  const longest = formatMacaroon({ ...macaroon, identifier: new Uint8Array(MACAROON_MAX_SIZE - overhead) });
  expect(longest).toHaveLength(8192);
  expect(looksLikeMacaroon(longest)).toBe(true);
  expect(looksLikeMacaroon(`${longest}AAAA`)).toBe(false);
  expect(() => parseMacaroon(`${longest}AAAA`)).toThrow("over 8192 characters");
});

test("any text formats back or is a format error", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        anyText,
        fc.base64String().map((rest) => `Ag${rest}`),
      ),
      (any) => {
        const looks = looksLikeMacaroon(any);
        if (looks) expect(formatMacaroon(parseMacaroon(any))).toBe(any);
        else expect(() => parseMacaroon(any)).toThrow(MacaroonFormatError);
      },
    ),
  );
});
