import { expect, test } from "vitest";
import { verify, verifyAll } from "../../../src/verify/verify.ts";
import { HOUR, NOW, newFixture, requestsOf } from "../fixture.ts";

const garbage = (from: number, count: number) => Array.from({ length: count }, (_, i) => `garbage ${from + i}`);

test("a flood of unknown raw keys evicts nothing else, and stays within its own bound", async () => {
  const fixture = newFixture({ maxNegatives: 500 });
  const known = Array.from({ length: 200 }, (_, i) =>
    i % 2 === 0 ? fixture.issue() : fixture.importRaw(`raw key ${i}`),
  );
  const credentials = known.map(({ credential }) => credential);
  await verifyAll(fixture.context, requestsOf(credentials));
  const before = fixture.cache.stats();
  expect(before).toMatchObject({ credentials: 200 });
  for (let from = 0; from < 20_000; from += 1000) {
    const verdicts = await verifyAll(fixture.context, requestsOf(garbage(from, 1000)));
    expect(verdicts.every(({ valid }) => !valid)).toBe(true);
    expect(fixture.cache.stats().negatives).toBeLessThanOrEqual(500);
  }
  const { entries, credentials: cached, bytes, allocatedBytes, evictions } = before;
  expect(fixture.cache.stats()).toMatchObject({ entries, credentials: cached, bytes, allocatedBytes, evictions });
  expect(verifyAll(fixture.context, requestsOf(credentials))).not.toBeInstanceOf(Promise);
});

test("a repeated unknown raw key is answered from the cache", async () => {
  const fixture = newFixture();
  await verify(fixture.context, "garbage");
  expect(verify(fixture.context, "garbage")).toMatchObject({ reason: "NOT_FOUND" });
});

test("a flood of tokens evicts no credential that is in use, nor the key that they name", async () => {
  const fixture = newFixture({ maxEntries: 300 });
  const known = Array.from({ length: 100 }, () => fixture.issue());
  const credentials = known.map(({ credential }) => credential);
  await verifyAll(fixture.context, requestsOf(credentials));
  const [{ keyId } = { keyId: "" }] = known;
  for (let i = 0; i < 1000; i++) {
    await verify(fixture.context, fixture.macaroon(keyId, NOW + HOUR + i));
    if (i % 50 === 0) expect(verifyAll(fixture.context, requestsOf(credentials))).not.toBeInstanceOf(Promise);
  }
  const { credentials: cached, entries, evictions } = fixture.cache.stats();
  expect([entries, cached <= 300, evictions > 500]).toEqual([1, true, true]);
});

test("more keys than the capacity are still evaluated correctly, within the bounds", async () => {
  const fixture = newFixture({ maxEntries: 200 });
  const known = Array.from({ length: 1000 }, (_, i) =>
    i % 2 === 0 ? fixture.issue() : fixture.importRaw(`raw key ${i}`),
  );
  for (let round = 0; round < 3; round++) {
    for (const { keyId, credential } of known) {
      expect(await verify(fixture.context, credential)).toMatchObject({ valid: true, key: { keyId } });
    }
    const { entries, credentials, allocatedBytes } = fixture.cache.stats();
    expect(Math.max(entries, credentials)).toBeLessThanOrEqual(200);
    expect(allocatedBytes).toBeLessThanOrEqual(16 * 2 ** 20);
  }
  expect(fixture.cache.stats().evictions).toBeGreaterThan(1000);
});

test("hits, misses and entries are counted", async () => {
  const fixture = newFixture();
  const { credential } = fixture.issue();
  expect(fixture.cache.stats()).toMatchObject({ entries: 0, hits: 0, misses: 0, bytes: 0 });
  for (let call = 0; call < 3; call++) await verify(fixture.context, credential);
  await verify(fixture.context, "garbage");
  expect(fixture.cache.stats()).toMatchObject({ entries: 0, credentials: 1, negatives: 1, hits: 2, misses: 2 });
  const [keyId = ""] = fixture.store.records.keys();
  await verify(fixture.context, fixture.macaroon(keyId, NOW + HOUR));
  expect(fixture.cache.stats()).toMatchObject({ entries: 1, credentials: 2 });
  fixture.cache.clear();
  expect(fixture.cache.stats()).toMatchObject({ entries: 0, credentials: 0, negatives: 0, bytes: 0 });
});

test("a rate limit takes at most 36 bytes of a cached key", async () => {
  const limits = [{ name: "requests", quota: 60, window: 60_000, burst: 120, enforcement: "ENFORCED" } as const];
  const rateLimits = limits.map((limit) => ({ ...limit, onDemand: false, onOutage: "DENY" }) as const);
  const bytesOf = async (change: object) => {
    const fixture = newFixture({ maxEntries: 2_000 });
    const credentials = Array.from({ length: 1_000 }, () => fixture.issue(change).credential);
    await verifyAll(fixture.context, requestsOf(credentials));
    expect(fixture.cache.stats()).toMatchObject({ credentials: 1_000 });
    return fixture.cache.stats().bytes / 1_000;
  };
  const more = (await bytesOf({ rateLimits })) - (await bytesOf({}));
  console.info(`${more} bytes`);
  expect(more).toBeGreaterThan(0);
  expect(more).toBeLessThanOrEqual(36);
});
