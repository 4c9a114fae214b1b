import { expect, test } from "vitest";
import { verify, verifyAll } from "../../../src/verify/verify.ts";
import { HOUR, NOW, newBench } from "../fixture.ts";

const garbage = (from: number, count: number) => Array.from({ length: count }, (_, i) => `garbage ${from + i}`);

test("a flood of unknown raw keys evicts nothing else, and stays within its own bound", async () => {
  const bench = newBench({ maxNegatives: 500 });
  const known = Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? bench.issue() : bench.importRaw(`raw key ${i}`)));
  const credentials = known.map(({ credential }) => credential);
  await verifyAll(bench.context, credentials);
  const before = bench.cache.stats();
  expect(before).toMatchObject({ entries: 200, recognitions: 200 });
  for (let from = 0; from < 20_000; from += 1000) {
    const verdicts = await verifyAll(bench.context, garbage(from, 1000));
    expect(verdicts.every(({ valid }) => !valid)).toBe(true);
    expect(bench.cache.stats().negatives).toBeLessThanOrEqual(500);
  }
  const { entries, recognitions, bytes, allocatedBytes, evictions } = before;
  expect(bench.cache.stats()).toMatchObject({ entries, recognitions, bytes, allocatedBytes, evictions });
  expect(verifyAll(bench.context, credentials)).not.toBeInstanceOf(Promise);
});

test("a repeated unknown raw key is answered from the cache", async () => {
  const bench = newBench();
  await verify(bench.context, "garbage");
  expect(verify(bench.context, "garbage")).toMatchObject({ reason: "NOT_FOUND" });
});

test("a flood of tokens evicts no key, and entries in use stay", async () => {
  const bench = newBench({ maxEntries: 300 });
  const known = Array.from({ length: 100 }, () => bench.issue());
  const credentials = known.map(({ credential }) => credential);
  await verifyAll(bench.context, credentials);
  const [{ keyId } = { keyId: "" }] = known;
  for (let i = 0; i < 1000; i++) {
    await verify(bench.context, bench.macaroon(keyId, NOW + HOUR + i));
    if (i % 50 === 0) expect(verifyAll(bench.context, credentials)).not.toBeInstanceOf(Promise);
  }
  const { recognitions, entries, evictions } = bench.cache.stats();
  expect([entries, recognitions <= 300, evictions > 500]).toEqual([100, true, true]);
});

test("more keys than the capacity are still evaluated correctly, within the bounds", async () => {
  const bench = newBench({ maxEntries: 200 });
  const known = Array.from({ length: 1000 }, (_, i) => (i % 2 === 0 ? bench.issue() : bench.importRaw(`raw key ${i}`)));
  for (let round = 0; round < 3; round++) {
    for (const { keyId, credential } of known) {
      expect(await verify(bench.context, credential)).toMatchObject({ valid: true, key: { keyId } });
    }
    const { entries, recognitions, allocatedBytes } = bench.cache.stats();
    expect(Math.max(entries, recognitions)).toBeLessThanOrEqual(200);
    expect(allocatedBytes).toBeLessThanOrEqual(16 * 2 ** 20);
  }
  expect(bench.cache.stats().evictions).toBeGreaterThan(1000);
});

test("hits, misses and entries are counted", async () => {
  const bench = newBench();
  const { credential } = bench.issue();
  expect(bench.cache.stats()).toMatchObject({ entries: 0, hits: 0, misses: 0, bytes: 0 });
  for (let call = 0; call < 3; call++) await verify(bench.context, credential);
  await verify(bench.context, "garbage");
  expect(bench.cache.stats()).toMatchObject({ entries: 1, recognitions: 1, negatives: 1, hits: 2, misses: 2 });
  bench.cache.clear();
  expect(bench.cache.stats()).toMatchObject({ entries: 0, recognitions: 0, negatives: 0, bytes: 0 });
});
