import { createHmac, createSecretKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HmacKey } from "../../src/lib/hmac.ts";

const keyOf = (bytes: Uint8Array) => new HmacKey(createSecretKey(bytes));

/** RFC 4231 §4. Cases 6 and 7 have keys of 131 bytes, longer than any supported; case 5 truncates the output. */
const VECTORS = [
  {
    name: "4.2",
    key: Buffer.alloc(20, 0x0b),
    data: Buffer.from("Hi There"),
    digest: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  },
  {
    name: "4.3",
    key: Buffer.from("Jefe"),
    data: Buffer.from("what do ya want for nothing?"),
    digest: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  },
  {
    name: "4.4",
    key: Buffer.alloc(20, 0xaa),
    data: Buffer.alloc(50, 0xdd),
    digest: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
  },
  {
    name: "4.5",
    key: Buffer.from(Array.from({ length: 25 }, (_, i) => i + 1)),
    data: Buffer.alloc(50, 0xcd),
    digest: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
  },
  {
    name: "4.6",
    key: Buffer.alloc(20, 0x0c),
    data: Buffer.from("Test With Truncation"),
    digest: "a3b6167473100ee06e0c796c2955552b",
  },
];

test.each(VECTORS)("RFC 4231 §$name", ({ key, data, digest }) => {
  expect(keyOf(key).digest([data]).toString("hex").slice(0, digest.length)).toBe(digest);
});

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
