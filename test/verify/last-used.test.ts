import { expect, test } from "vitest";
import { createLastUsed, type LastUsed, type Use } from "../../src/verify/last-used.ts";

const MINUTE = 60_000;
const START = Date.parse("2026-01-01T00:00:00Z");

interface Fixture {
  readonly lastUsed: LastUsed;
  /** Every write: the minute after the start, and the keys. */
  readonly writes: (readonly [number, readonly string[]])[];
  /** Sets the clock to this many minutes after the start. */
  at(minutes: number): void;
  /** The next write fails. */
  failOnce(): void;
}

function newFixture(): Fixture {
  let [now, fails] = [START, false];
  const writes: (readonly [number, readonly string[]])[] = [];
  const touch = async (uses: readonly Use[], minute: Date) => {
    if (fails) {
      fails = false;
      throw new Error("the database is unreachable");
    }
    writes.push([(minute.getTime() - START) / MINUTE, uses.map(({ keyId }) => keyId)]);
  };
  return {
    lastUsed: createLastUsed(touch, { now: () => now }),
    writes,
    at: (minutes) => {
      now = START + minutes * MINUTE;
    },
    failOnce: () => {
      fails = true;
    },
  };
}

test("a use is written at the next flush, to the minute", async () => {
  const { lastUsed, writes, at } = newFixture();
  at(3.99);
  lastUsed.note("a");
  expect(writes).toEqual([]);
  await lastUsed.flush();
  expect(writes).toEqual([[3, ["a"]]]);
});

test("without a use nothing is written", async () => {
  const { lastUsed, writes } = newFixture();
  await lastUsed.flush();
  await lastUsed.flush();
  expect(writes).toEqual([]);
});

test("a burst of one key between two flushes is one write", async () => {
  const { lastUsed, writes, at } = newFixture();
  for (let second = 0; second < 5; second++) {
    at(second / 60);
    for (let use = 0; use < 100; use++) lastUsed.note("a");
  }
  await lastUsed.flush();
  expect(writes).toEqual([[0, ["a"]]]);
});

test("keys used in the same minute share one write", async () => {
  const { lastUsed, writes, at } = newFixture();
  for (const key of ["a", "b", "c"]) lastUsed.note(key);
  at(1);
  for (const key of ["b", "d"]) lastUsed.note(key);
  await lastUsed.flush();
  expect(writes).toEqual([
    [0, ["a", "c"]],
    [1, ["b", "d"]],
  ]);
});

test("a failed write is retried with the next flush, unless the key was used again since", async () => {
  const { lastUsed, writes, at, failOnce } = newFixture();
  lastUsed.note("a");
  lastUsed.note("b");
  failOnce();
  await expect(lastUsed.flush()).rejects.toThrow("the database is unreachable");
  at(1);
  lastUsed.note("b");
  await lastUsed.flush();
  expect(writes).toEqual([
    [0, ["a"]],
    [1, ["b"]],
  ]);
});

test("uses of older secrets are written beside those of the current one, with the address as it is to be stored", async () => {
  const written: Use[] = [];
  const touch = async (uses: readonly Use[]) => void written.push(...uses);
  const lastUsed = createLastUsed(touch, { now: () => START }, ({ clientIp }) => (clientIp ? `of ${clientIp}` : null));
  lastUsed.note("a", null, { clientIp: "1.2.3.4" });
  for (const secret of [7, 8, 7]) lastUsed.note("a", secret);
  await lastUsed.flush();
  expect(written).toMatchObject([
    { keyId: "a", oldSecret: null, address: "of 1.2.3.4" },
    { keyId: "a", oldSecret: 7, address: null },
    { keyId: "a", oldSecret: 8, address: null },
  ]);
});

test("a clock that is set back does not revert a use", async () => {
  const { lastUsed, writes, at } = newFixture();
  at(5);
  lastUsed.note("a");
  at(4);
  lastUsed.note("a");
  await lastUsed.flush();
  expect(writes).toEqual([[5, ["a"]]]);
});

test("uses recorded during a write are not lost", async () => {
  const written: string[][] = [];
  const gate = Promise.withResolvers<void>();
  const touch = async (uses: readonly Use[]) => {
    await gate.promise;
    written.push(uses.map(({ keyId }) => keyId));
  };
  const lastUsed = createLastUsed(touch, { now: () => START });
  lastUsed.note("a");
  const first = lastUsed.flush();
  lastUsed.note("b");
  gate.resolve();
  await first;
  await lastUsed.flush();
  expect(written).toEqual([["a"], ["b"]]);
});

test("the number of keys between two flushes is bounded, and only those within are noted", async () => {
  const { lastUsed, writes } = newFixture();
  const noted = Array.from({ length: 30_002 }, (_, key) => lastUsed.note(`key ${key}`));
  expect([noted.indexOf(false), lastUsed.note("key 0")]).toEqual([30_000, true]);
  await lastUsed.flush();
  expect(writes.flatMap(([, keyIds]) => keyIds)).toHaveLength(30_000);
  expect(lastUsed.note("key 30000")).toBe(true);
});

test("many keys are split into several small writes", async () => {
  const { lastUsed, writes } = newFixture();
  const keyIds = Array.from({ length: 1001 }, (_, index) => `key-${index}`);
  for (const keyId of keyIds) lastUsed.note(keyId);
  await lastUsed.flush();
  expect(Math.max(...writes.map(([, written]) => written.length))).toBeLessThanOrEqual(200);
  expect(writes.flatMap(([, written]) => written)).toEqual(keyIds);
});
