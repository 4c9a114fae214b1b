import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBase64url, encodeBase64url } from "../../src/lib/bytes.ts";
import { anyText } from "./any-text.ts";

// RFC 4648 §10, without padding, and the two characters of §5.
const KNOWN = [
  { hex: "", text: "" },
  { hex: "66", text: "Zg" },
  { hex: "666f", text: "Zm8" },
  { hex: "666f6f", text: "Zm9v" },
  { hex: "666f6f62", text: "Zm9vYg" },
  { hex: "666f6f6261", text: "Zm9vYmE" },
  { hex: "666f6f626172", text: "Zm9vYmFy" },
  { hex: "fbff", text: "-_8" },
];

test.each(KNOWN)("$hex is $text", ({ hex, text }) => {
  expect(encodeBase64url(Buffer.from(hex, "hex"))).toBe(text);
  expect(Buffer.from(decodeBase64url(text) ?? "none").toString("hex")).toBe(hex);
});

test.each(["Zg==", "Zh", "Zm9", "Z", "+/8", "Zm 8", "Zm8\n", "Zm8é", "Zm.8"])("rejects %j", (text) => {
  expect(decodeBase64url(text)).toBeUndefined();
});

test("round-trips bytes at any offset", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (bytes) => {
      const inner = bytes.subarray(1);
      expect(new Uint8Array(decodeBase64url(encodeBase64url(inner)) ?? [])).toEqual(inner);
    }),
  );
});

test("decoded text encodes back", () => {
  const texts = fc.oneof(
    fc.base64String().map((text) => text.replaceAll("=", "")),
    anyText,
  );
  let read = 0;
  fc.assert(
    fc.property(texts, (text) => {
      const bytes = decodeBase64url(text);
      if (bytes === undefined) return;
      read++;
      expect(encodeBase64url(bytes)).toBe(text);
    }),
  );
  expect(read).toBeGreaterThan(10);
});
