import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBase62, decodeBase62Number, encodeBase62, encodeBase62Number } from "../../src/lib/base62.ts";

const blocks = fc
  .array(fc.uint8Array({ minLength: 8, maxLength: 8 }), { maxLength: 10 })
  .map((parts) => new Uint8Array(parts.flatMap((part) => [...part])));

const KNOWN_BLOCKS = [
  { hex: "", text: "" },
  { hex: "0000000000000000", text: "00000000000" },
  { hex: "0000000000000001", text: "00000000001" },
  { hex: "000000000000003d", text: "0000000000z" },
  { hex: "000000000000003e", text: "00000000010" },
  { hex: "00000000369b13e0", text: "00000100000" },
  { hex: "ffffffffffffffff", text: "LygHa16AHYF" },
  { hex: "0000000000000001ffffffffffffffff", text: "00000000001LygHa16AHYF" },
];

test.each(KNOWN_BLOCKS)("$hex is $text", ({ hex, text }) => {
  expect(encodeBase62(Buffer.from(hex, "hex"))).toBe(text);
  expect(Buffer.from(decodeBase62(text) ?? "none").toString("hex")).toBe(hex);
});

test.each(["LygHa16AHYG", "zzzzzzzzzzz", "0000000000", "000000000000", "0000000000-", "0000000000é", "0000000000\n"])(
  "rejects %j",
  (text) => {
    expect(decodeBase62(text)).toBeUndefined();
  },
);

test("round-trips bytes", () => {
  fc.assert(
    fc.property(blocks, (bytes) => {
      expect(decodeBase62(encodeBase62(bytes))).toEqual(bytes);
    }),
  );
});

test("a block is a big-endian number", () => {
  const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const texts = fc.string({ unit: fc.constantFrom(...digits), minLength: 11, maxLength: 11 });
  fc.assert(
    fc.property(texts, (text) => {
      const value = [...text].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n);
      const bytes = value < 2n ** 64n ? value.toString(16).padStart(16, "0") : undefined;
      const decoded = decodeBase62(text);
      expect(decoded && Buffer.from(decoded).toString("hex")).toBe(bytes);
    }),
    { numRuns: 2000 },
  );
});

test("decodes a block at any offset", () => {
  const bytes = Uint8Array.from({ length: 24 }, (_, index) => index);
  expect(encodeBase62(bytes.subarray(8, 16))).toBe(encodeBase62(bytes).slice(11, 22));
});

test("rejects a length that is not a multiple of 8", () => {
  expect(() => encodeBase62(new Uint8Array(7))).toThrow(RangeError);
});

test("round-trips numbers in a fixed width", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), (value) => {
      const digits = encodeBase62Number(value, 9);
      expect(digits).toHaveLength(9);
      expect(decodeBase62Number(digits)).toBe(value);
    }),
  );
});

test.each([
  [62 ** 2, 2],
  [-1, 6],
  [1.5, 6],
  [2 ** 53, 11],
  [Number.NaN, 2],
])("%d does not fit into %d digits", (value, width) => {
  expect(() => encodeBase62Number(value, width)).toThrow(RangeError);
});

test("rejects numbers from 2^53", () => {
  expect(decodeBase62Number("fFgnDxSe7")).toBe(Number.MAX_SAFE_INTEGER);
  expect(decodeBase62Number("fFgnDxSe8")).toBeUndefined();
});
