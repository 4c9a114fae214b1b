import { expect, test } from "vitest";
import { invalid, type Valid, type Verdict } from "../../src/domain/verdict.ts";
import { UsageCounter } from "../../src/usage/counter.ts";
import { type Flush, UsageFlusher, type UsageStore } from "../../src/usage/flush.ts";

const valid = (keyId: string) => ({ valid: true, keyId }) as Valid;

test("verdicts are counted by key and outcome", () => {
  const counter = new UsageCounter();
  for (const verdict of [valid("a"), valid("a"), invalid("EXPIRED", "", "a"), valid("b")]) counter.add(verdict);
  expect(counter.take()).toEqual([
    { keyId: "a", outcome: "VALID", count: 2 },
    { keyId: "a", outcome: "EXPIRED", count: 1 },
    { keyId: "b", outcome: "VALID", count: 1 },
  ]);
  expect(counter.take()).toEqual([]);
});

/** A verdict whose key has limits of these names, with the costs. */
const charged = (verdict: Verdict, ...costs: readonly (readonly [name: string, cost: number])[]) =>
  ({ ...verdict, limits: costs.map(([name, cost]) => ({ limit: { name }, cost })) }) as unknown as Verdict;

test("an admitted verification adds its cost by each limit, by limits with one name once", () => {
  const counter = new UsageCounter();
  counter.add(charged(valid("a"), ["requests", 1], ["tokens", 20], ["requests", 1]));
  counter.add(charged(valid("a"), ["tokens", 5], ["peeked", 0]));
  counter.add(charged(invalid("RATE_LIMITED", "", "a"), ["requests", 1]));
  expect(counter.take()).toEqual([
    { keyId: "a", outcome: "VALID", count: 2 },
    { keyId: "a", outcome: "RATE_LIMITED", count: 1 },
    { keyId: "a", outcome: "units/requests", count: 1 },
    { keyId: "a", outcome: "units/tokens", count: 25 },
  ]);
});

test("a verdict without a key is not counted", () => {
  const counter = new UsageCounter();
  counter.add(invalid("NOT_FOUND", "no such key"));
  expect([counter.take(), counter.dropped]).toEqual([[], 0]);
});

test("the number of keys is bounded, and what is not counted is reported", () => {
  const counter = new UsageCounter(2);
  for (const keyId of ["a", "b", "c", "c", "a"]) counter.add(valid(keyId));
  expect(counter.take()).toEqual([
    { keyId: "a", outcome: "VALID", count: 2 },
    { keyId: "b", outcome: "VALID", count: 1 },
  ]);
  expect(counter.dropped).toBe(2);
});

/** A flusher whose store fails as often as `failures` says. */
function fixture() {
  const counter = new UsageCounter();
  const [flushed, maintained]: [Flush[], number[]] = [[], []];
  const state = { failures: 0, time: 0, isUnfinished: false };
  const store: UsageStore = {
    flush: async (flush) => {
      flushed.push(flush);
      if (state.failures-- > 0) throw new Error("the database is unreachable");
    },
    maintain: async (retention) => {
      maintained.push(retention);
      return state.isUnfinished;
    },
  };
  const flusher = new UsageFlusher({ counter, store, retention: 7, monotonic: () => state.time });
  return { counter, flusher, flushed, maintained, state };
}

test("a flush that failed is repeated as it was, before later counts", async () => {
  const { counter, flusher, flushed, state } = fixture();
  counter.add(valid("a"));
  state.failures = 1;
  await expect(flusher.run()).rejects.toThrow("unreachable");
  counter.add(valid("a"));
  counter.add(valid("b"));
  expect(flusher.waiting).toBe(3);
  await flusher.run();
  const [first, again, next] = flushed;
  expect(again).toBe(first);
  expect(next?.rows.map(({ keyId }) => keyId)).toEqual(["a", "b"]);
  expect(next?.id).toBeGreaterThan(first?.id ?? 0);
  expect([flusher.stored, flusher.waiting, flushed.length]).toEqual([3, 0, 3]);
});

test("units are no verifications that are stored", async () => {
  const { counter, flusher } = fixture();
  counter.add(charged(valid("a"), ["tokens", 20]));
  await flusher.run();
  expect(flusher.stored).toBe(1);
});

test("many keys are flushed in parts", async () => {
  const { counter, flusher, flushed } = fixture();
  for (let key = 0; key < 4_500; key++) counter.add(valid(String(key)));
  await flusher.run();
  expect(flushed.map(({ rows }) => rows.length)).toEqual([2_000, 2_000, 500]);
  expect(new Set(flushed.map(({ id }) => id)).size).toBe(3);
  expect(flusher.stored).toBe(4_500);
});

test("partitions are maintained once an hour, at once while there is more to do, and after a failure", async () => {
  const { counter, flusher, maintained, state } = fixture();
  state.isUnfinished = true;
  await flusher.run();
  state.isUnfinished = false;
  for (let times = 0; times < 3; times++) await flusher.run();
  expect(maintained).toEqual([7, 7]);
  state.time = 3_600_000;
  await flusher.run();
  expect(maintained).toHaveLength(3);
  counter.add(valid("a"));
  state.failures = 1;
  await flusher.run().catch(() => undefined);
  await flusher.run();
  expect(maintained).toHaveLength(4);
});
