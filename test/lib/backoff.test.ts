import { expect, test } from "vitest";
import { backoffDelay } from "../../src/lib/backoff.ts";

test("the delay doubles with each failure up to the maximum, and the jitter subtracts up to half", () => {
  const range = { first: 20, max: 200 };
  const delays = (random: () => number) =>
    [1, 2, 3, 4, 5, 6, 2_000].map((failures) => backoffDelay(failures, range, random));
  expect(delays(() => 0)).toEqual([20, 40, 80, 160, 200, 200, 200]);
  expect(delays(() => 1)).toEqual([10, 20, 40, 80, 100, 100, 100]);
});
