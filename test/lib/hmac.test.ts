import { createHmac, createSecretKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HmacKey } from "../../src/lib/hmac.ts";

const keyOf = (bytes: Uint8Array) => new HmacKey(createSecretKey(bytes));

describe("the HMAC of Node", () => {
  const parts = fc.array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 200 }), fc.uint8Array({ maxLength: 600 })));

  test("agrees, for short and long messages in any parts", () => {
    const keys = fc.uint8Array({ minLength: 0, maxLength: 64 });
    fc.assert(
      fc.property(keys, fc.array(parts, { minLength: 1, maxLength: 5 }), (bytes, messages) => {
        const key = keyOf(bytes);
        // Sequentially, to show that no message affects the next.
        for (const message of messages) {
          const theirs = createHmac("sha256", bytes);
          for (const part of message) theirs.update(part);
          expect(key.digest(message).equals(theirs.digest())).toBe(true);
        }
      }),
    );
  });

  test.each([0, 1, 682, 683, 2047, 2048, 2049, 5000])(
    "is the same for a message of %i characters, as text and as bytes",
    (length) => {
      const bytes = Buffer.alloc(32, 7);
      for (const text of ["a".repeat(length), "€".repeat(length)]) {
        const theirs = createHmac("sha256", bytes).update(text).digest("hex");
        expect(keyOf(bytes).digest([text]).toString("hex")).toBe(theirs);
        expect(
          keyOf(bytes)
            .digest([Buffer.from(text)])
            .toString("hex"),
        ).toBe(theirs);
      }
    },
  );
});

test("rejects a key longer than a block", () => {
  expect(() => keyOf(Buffer.alloc(65))).toThrow(RangeError);
});
