import { expect, test } from "vitest";
import { alternate } from "../../bench/harness/alternate.ts";
import { figureOf, isWithin, median, spread } from "../../bench/harness/statistics.ts";

test.each([
  { samples: [3], expected: 3 },
  { samples: [10, 9, 1], expected: 9 },
  { samples: [1, 100, 2, 3], expected: 2.5 },
])("the median of $samples is $expected", ({ samples, expected }) => {
  expect(median(samples)).toBe(expected);
});

test("an empty list has no median", () => {
  expect(() => median([])).toThrow(RangeError);
});

test("a spread has minimum, maximum and the samples in order", () => {
  expect(spread([5, 1, 3])).toEqual({ median: 3, min: 1, max: 5, samples: [5, 1, 3] });
});

test("a figure is computed from medians: one outlier does not change it, nor does a machine that is slow for a while", () => {
  const [subject, baseline] = [spread([90, 1, 45]), spread([100, 120, 50])];
  expect(figureOf("ratio", subject, baseline)).toBe(0.9);
  expect(figureOf("ratio", subject, spread([50]))).toBe(0.9);
  expect(figureOf("difference", subject, baseline)).toBe(-55);
  expect(figureOf("value", subject, null)).toBe(45);
  expect(() => figureOf("ratio", subject, null)).toThrow(RangeError);
});

test("bounds are inclusive", () => {
  expect([0.84, 0.85, 0.86].map((figure) => isWithin(figure, { at_least: 0.85 }))).toEqual([false, true, true]);
  expect([0.69, 0.7, 0.71].map((figure) => isWithin(figure, { at_most: 0.7 }))).toEqual([true, true, false]);
  expect(isWithin(1, {})).toBe(true);
});

test("subject and baseline alternate, and the warm-up round is discarded", async () => {
  const turns: string[] = [];
  const side = (name: string) => async () => turns.push(name);
  const rounds = await alternate({ subject: side("subject"), baseline: side("baseline") }, 2, true);
  expect(turns).toEqual(["subject", "baseline", "subject", "baseline", "subject", "baseline"]);
  expect(rounds.subject.samples).toEqual([3, 5]);
  expect(rounds.baseline?.samples).toEqual([4, 6]);
});
