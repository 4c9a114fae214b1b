import { expect, test } from "vitest";
import { Backoff } from "../../src/cluster/backoff.ts";

test.each([
  ["refuses", false, [20, 40, 80, 160, 200, 200]],
  ["does not answer", true, [250, 500, 1000, 2000, 2000, 2000]],
])("a database that %s is retried at increasing intervals", (_, isSilent, intervals) => {
  const [longest, shortest] = [new Backoff(() => 0), new Backoff(() => 1)];
  for (const interval of intervals) {
    expect(longest.next(isSilent)).toBe(interval);
    expect(shortest.next(isSilent)).toBe(interval * 0.75);
  }
  longest.reset();
  expect(longest.next(isSilent)).toBe(intervals[0]);
});
