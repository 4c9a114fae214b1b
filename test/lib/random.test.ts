import fc from "fast-check";
import { expect, test } from "vitest";
import { pooledRandom, type Random } from "../../src/lib/random.ts";

/** Counts up in two bytes each, so that every pair of bytes occurs once. */
function counting(): Random & { readonly drawn: Uint8Array[] } {
  let next = 1;
  const drawn: Uint8Array[] = [];
  return {
    drawn,
    bytes: (size) => {
      const pairs = Array.from({ length: size / 2 }, () => next++);
      drawn.push(Uint8Array.from(pairs.flatMap((value) => [value >> 8, value & 0xff])));
      return drawn.at(-1) ?? new Uint8Array();
    },
  };
}

test("returns every byte once, in any sizes", () => {
  const sizes = fc.array(fc.constantFrom(2, 12, 16, 32, 64, 66, 5000), { minLength: 1, maxLength: 500 });
  fc.assert(
    fc.property(sizes, (all) => {
      const random = pooledRandom(counting());
      const pairs = all.flatMap((size) => {
        const bytes = Buffer.from(random.bytes(size));
        expect(bytes).toHaveLength(size);
        return Array.from({ length: size / 2 }, (_, index) => bytes.readUInt16BE(2 * index));
      });
      expect(new Set(pairs).size).toBe(pairs.length);
      expect(pairs).not.toContain(0);
    }),
    { numRuns: 30 },
  );
});

test("many small requests make one call of the source", () => {
  const source = counting();
  const random = pooledRandom(source);
  for (let index = 0; index < 100; index += 1) random.bytes(16);
  expect(source.drawn).toHaveLength(1);
});

test("zeroes returned bytes in the pool, and returns copies", () => {
  const source = counting();
  const random = pooledRandom(source);
  const first = random.bytes(16);
  expect(Buffer.from(source.drawn[0]?.subarray(0, 16) ?? []).equals(Buffer.alloc(16))).toBe(true);
  first.fill(0xff);
  expect(random.bytes(16)).toEqual(counting().bytes(32).subarray(16));
});
