import { expect, test } from "vitest";
import { alternate } from "../../bench/harness/alternate.ts";
import { judge, keeps, median, spread } from "../../bench/harness/statistics.ts";

test.each([
  { samples: [3], expected: 3 },
  { samples: [10, 9, 1], expected: 9 },
  { samples: [1, 100, 2, 3], expected: 2.5 },
])("the median of $samples is $expected", ({ samples, expected }) => {
  expect(median(samples)).toBe(expected);
});

test("nothing has no median", () => {
  expect(() => median([])).toThrow(RangeError);
});

test("a spread has the least and the greatest of the samples in their order", () => {
  expect(spread([5, 1, 3])).toEqual({ median: 3, min: 1, max: 5, samples: [5, 1, 3] });
});

test("a figure is judged by medians: one bad round changes nothing, nor does a machine that gets slow for a while", () => {
  const [subject, baseline] = [spread([90, 1, 45]), spread([100, 120, 50])];
  expect(judge("ratio", subject, baseline)).toBe(0.9);
  expect(judge("ratio", subject, spread([50]))).toBe(0.9);
  expect(judge("difference", subject, baseline)).toBe(-55);
  expect(judge("value", subject, null)).toBe(45);
  expect(() => judge("ratio", subject, null)).toThrow(RangeError);
});

test("a bound is kept from its own value on", () => {
  expect([0.84, 0.85, 0.86].map((figure) => keeps(figure, { at_least: 0.85 }))).toEqual([false, true, true]);
  expect([0.69, 0.7, 0.71].map((figure) => keeps(figure, { at_most: 0.7 }))).toEqual([true, true, false]);
  expect(keeps(1, {})).toBe(true);
});

test("subject and baseline take turns, and a round to warm up does not count", async () => {
  const turns: string[] = [];
  const side = (name: string) => async () => turns.push(name);
  const rounds = await alternate({ subject: side("subject"), baseline: side("baseline") }, 2, true);
  expect(turns).toEqual(["subject", "baseline", "subject", "baseline", "subject", "baseline"]);
  expect(rounds.subject.samples).toEqual([3, 5]);
  expect(rounds.baseline?.samples).toEqual([4, 6]);
});
