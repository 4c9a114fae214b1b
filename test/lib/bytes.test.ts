import fc from "fast-check";
import { expect, test } from "vitest";
import { equalBytes } from "../../src/lib/bytes.ts";

test("bytes equal themselves", () => {
  fc.assert(fc.property(fc.uint8Array(), (bytes) => equalBytes(bytes, Uint8Array.from(bytes))));
});

test("detects any changed bit or length", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), fc.nat(), fc.integer({ min: 0, max: 7 }), (bytes, at, bit) => {
      const changed = bytes.map((byte, index) => (index === at % bytes.length ? byte ^ (1 << bit) : byte));
      expect(equalBytes(bytes, changed)).toBe(false);
      expect(equalBytes(bytes, bytes.subarray(1))).toBe(false);
      expect(equalBytes(bytes.subarray(1), bytes)).toBe(false);
    }),
  );
});
