import { expect, test } from "vitest";
import { type ExceededLimit, ExceededLimits } from "../../src/audit/exceeded-limits.ts";

const HOUR = 3_600_000;
const describe = () => ({ limit: "changes", details: {}, period: HOUR });

function recorder(maxBuckets = 100) {
  const limits = new ExceededLimits(maxBuckets);
  const record = async (now: number, error?: Error) => {
    let written: readonly ExceededLimit[] = [];
    await limits.record(now, async (exceeded) => {
      if (error !== undefined) throw error;
      written = exceeded;
    });
    return written.map(({ bucket }) => bucket);
  };
  return { limits, record };
}

test("a limit that is exceeded many times is mentioned once an hour", async () => {
  const { limits, record } = recorder();
  for (let count = 0; count < 1_000; count++) limits.add("a", 0, describe);
  limits.add("b", 1, describe);
  expect(await record(2)).toEqual(["a", "b"]);
  limits.add("a", HOUR - 1, describe);
  expect(await record(HOUR)).toEqual([]);
  limits.add("a", HOUR, describe);
  limits.add("b", HOUR, describe);
  expect(await record(HOUR)).toEqual(["a"]);
});

test("what could not be recorded is recorded later", async () => {
  const { limits, record } = recorder();
  limits.add("a", 0, describe);
  await expect(record(0, new Error("the database is down"))).rejects.toThrow("the database is down");
  limits.add("b", 0, describe);
  expect(await record(1)).toEqual(["a", "b"]);
});

test("a flood of buckets is bounded, and the others are counted", async () => {
  const { limits, record } = recorder(100);
  for (let count = 0; count < 5_000; count++) limits.add(`address ${count}`, 0, describe);
  expect(await record(0)).toHaveLength(100);
  expect(limits.dropped).toBe(4_900);
  expect(await record(HOUR)).toEqual([]);
  limits.add("another", HOUR, describe);
  expect(await record(HOUR)).toEqual(["another"]);
});
