import { expect, test } from "vitest";
import { ByteCache, type ByteCacheOptions } from "../../../../src/verify/cache/store/byte-cache.ts";
import { type Seeded, seededBy } from "../../../support/seeded.ts";

const random = seededBy("BYTE_CACHE_SEED");

const bytes = (text: string) => Buffer.from(text, "latin1");
const SLAB = 1024;
const roomy: ByteCacheOptions = { maxBytes: 2 ** 20, maxEntries: 1000, seed: 1, slabBytes: SLAB };

/** Small bounds, so that every case is frequent. Colliding hashes would make this slow, not wrong. */
function anyOptions(random: Seeded): ByteCacheOptions {
  const maxEntries = 1 + random.below(60);
  const index = 8 * 2 ** Math.ceil(Math.log2(Math.max(maxEntries, 2) * 1.5));
  return { maxBytes: index + SLAB * (1 + random.below(5)), maxEntries, seed: random.below(2 ** 31), slabBytes: SLAB };
}

function anyValue(random: Seeded): Buffer {
  const length = random.below(10) === 0 ? random.below(SLAB) : random.below(90);
  return Buffer.alloc(length, random.below(256));
}

/** One operation on the cache and on a plain map of all entries that were not deleted. */
function step(cache: ByteCache, model: Map<string, Buffer>, random: Seeded): void {
  const key = `key ${random.below(120)}`.padEnd(random.pick([8, 16, 32]), ".");
  const choice = random.below(100);
  if (choice < 45) {
    const value = anyValue(random);
    if (cache.set(key, value)) model.set(key, value);
    else model.delete(key);
  } else if (choice < 80) {
    const found = cache.get(key);
    if (found !== undefined) expect(found.equals(model.get(key) ?? bytes("none"))).toBe(true);
  } else if (choice < 99) {
    const wasThere = cache.delete(key);
    if (wasThere) expect(model.has(key)).toBe(true);
    model.delete(key);
  } else {
    cache.clear();
    model.clear();
  }
}

function contents(cache: ByteCache, model: ReadonlyMap<string, Buffer>) {
  return [...model].filter(([key]) => cache.get(key) !== undefined);
}

test("equals a plain map except for evictions, and stays within its bounds", () => {
  let [evictions, hits, changes] = [0, 0, 0];
  for (let run = 0; run < 60; run++) {
    const seeded = random.fork();
    const options = anyOptions(seeded);
    const cache = new ByteCache(options);
    const model = new Map<string, Buffer>();
    for (let round = 0; round < 400; round++, changes++) {
      step(cache, model, seeded);
      expect(cache.size).toBeLessThanOrEqual(options.maxEntries);
      expect(cache.bytes).toBeLessThanOrEqual(cache.allocatedBytes);
      expect(cache.allocatedBytes).toBeLessThanOrEqual(options.maxBytes);
      if (round % 20 !== 0) continue;
      const left = contents(cache, model);
      expect(left.length).toBe(cache.size);
      for (const [key, value] of left) expect(cache.get(key)?.equals(value)).toBe(true);
      expect(cache.bytes).toBe(
        left.reduce((sum, [key, value]) => sum + 8 + roundUp(key.length) + roundUp(value.length), 0),
      );
      hits += left.length;
    }
    evictions += cache.evictions;
  }
  expect(changes).toBe(24_000);
  expect(Math.min(evictions, hits)).toBeGreaterThan(500);
});

function roundUp(length: number): number {
  return Math.ceil(length / 4) * 4;
}

test("evicts nothing below its capacity", () => {
  const cache = new ByteCache(roomy);
  for (let i = 0; i < 1000; i++) expect(cache.set(`key ${i}`, bytes(`value ${i}`))).toBe(true);
  for (let i = 0; i < 1000; i++) expect(cache.get(`key ${i}`)?.toString()).toBe(`value ${i}`);
  expect([cache.size, cache.evictions]).toEqual([1000, 0]);
});

test("evicts unused entries before used ones", () => {
  const cache = new ByteCache({ ...roomy, maxEntries: 200 });
  const used = Array.from({ length: 20 }, (_, i) => `used ${i}`);
  for (const key of used) cache.set(key, bytes(key));
  for (let i = 0; i < 10_000; i++) {
    cache.set(`other ${i}`, bytes("once"));
    if (i % 20 === 0) for (const key of used) expect(cache.get(key)?.equals(bytes(key))).toBe(true);
  }
  expect(cache.evictions).toBeGreaterThan(9000);
});

test("does not store an entry that is too large, and deletes the older one of its key", () => {
  const cache = new ByteCache(roomy);
  const key = "key";
  cache.set(key, bytes("small"));
  expect(cache.set(key, Buffer.alloc(SLAB))).toBe(false);
  expect([cache.get(key), cache.size, cache.bytes]).toEqual([undefined, 0, 0]);
  expect(cache.set("k".repeat(256), bytes("under a long key"))).toBe(false);
  expect(cache.set("k".repeat(255), bytes("under a long key"))).toBe(true);
});

test("copies its input", () => {
  const cache = new ByteCache(roomy);
  const value = bytes("value");
  cache.set("key", value);
  value.fill(0);
  expect(cache.get("key")?.toString()).toBe("value");
});

test("reuses the space of deleted entries", () => {
  const cache = new ByteCache({ ...roomy, maxBytes: 3 * SLAB + 32_768, maxEntries: 1000 });
  for (let i = 0; i < 10_000; i++) {
    expect(cache.set(`key ${i}`, Buffer.alloc(100))).toBe(true);
    expect(cache.delete(`key ${i}`)).toBe(true);
  }
  expect([cache.size, cache.bytes, cache.evictions]).toEqual([0, 0, 0]);
});

test("an entry takes half a slab at most", () => {
  const sizes = Array.from({ length: SLAB }, (_, length) => {
    const cache = new ByteCache(roomy);
    cache.set("key", Buffer.alloc(length));
    return cache.bytes;
  });
  expect(Math.max(...sizes)).toBe(SLAB / 2);
});

test("frees its memory when it is cleared", () => {
  const cache = new ByteCache(roomy);
  const empty = cache.allocatedBytes;
  for (let i = 0; i < 100; i++) cache.set(`key ${i}`, Buffer.alloc(100));
  expect(cache.allocatedBytes).toBeGreaterThan(empty + 10 * SLAB);
  cache.clear();
  expect([cache.allocatedBytes, cache.size, cache.bytes]).toEqual([empty, 0, 0]);
});

test.each([100, 10_000, 1_000_000])("accepts %d bytes and one entry for each 64", (maxBytes) => {
  const cache = new ByteCache({ maxBytes: maxBytes + 2048, maxEntries: Math.ceil(maxBytes / 64), seed: 1 });
  expect(cache.set("key", Buffer.alloc(200))).toBe(true);
});

test.each([{ maxBytes: 1000 }, { maxEntries: 0 }])("refuses bounds that are too small: %o", (bounds) => {
  expect(() => new ByteCache({ ...roomy, ...bounds })).toThrow(RangeError);
});
