import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { compareCheckouts } from "../../bench/harness/compare.ts";
import type { Pinning } from "../../bench/harness/pinning.ts";
import type { Result } from "../../bench/harness/results.ts";
import type { Scenario } from "../../bench/harness/scenario.ts";
import { type Stage, THIS_CHECKOUT } from "../../bench/harness/stage.ts";
import { comparisonText } from "../../bench/harness/text.ts";

const unpinned: Pinning = {
  unpinned: "not in a test",
  on: (_, [program = "", ...args]) => [program, ...args],
  move: () => {},
};

const OPTIONS = { other: "/elsewhere", starts: 2, rounds: 2, seconds: 1 };

/** Gives each start a figure of its own: 10, 20, 30, … */
function scenario(stages: Stage[], turns: string[]): Scenario {
  return {
    name: "one",
    group: "test",
    work: "work",
    against: "nothing",
    unit: "requests/s",
    judged: "value",
    prepare: async (stage) => {
      const figure = 10 * stages.push(stage);
      const subject = async () => {
        turns.push(stage.checkout);
        return figure;
      };
      return { subject, baseline: null };
    },
  };
}

test("two checkouts take turns on stages of their own, at each start anew", async () => {
  const [stages, turns, results]: [Stage[], string[], Result[]] = [[], [], []];
  await compareCheckouts(unpinned, [scenario(stages, turns)], {
    ...OPTIONS,
    onResult: (result) => results.push(result),
    onFailure: (_, error) => expect.unreachable(String(error)),
  });
  expect(turns).toEqual(Array.from({ length: 6 }, () => [THIS_CHECKOUT, "/elsewhere"]).flat());
  expect(new Set(stages.map(({ dir }) => dir)).size).toBe(4);
  expect(stages.filter(({ dir }) => existsSync(dir))).toEqual([]);
  const [result] = results;
  expect(result).toMatchObject({
    name: "one",
    judged: "ratio",
    against: "/elsewhere",
    figure: (10 / 20 + 30 / 40) / 2,
  });
  expect(result?.subject.samples).toEqual([10, 10, 30, 30]);
  expect(result?.baseline?.samples).toEqual([20, 20, 40, 40]);
  expect(result === undefined ? "" : comparisonText(result, { at_least: 0.97 })).toMatch(
    /0\.63 × {2}MISSED, ≥ 0\.97\n {2}rounds {4}0\.50 0\.50 0\.75 0\.75$/,
  );
});

test("a scenario that cannot be measured on one of them leaves nothing open, and the others run", async () => {
  const stages: Stage[] = [];
  const broken: Scenario = {
    ...scenario([], []),
    name: "broken",
    prepare: async (stage) => {
      stages.push(stage);
      throw new Error("no server");
    },
  };
  const [failed, measured]: [string[], string[]] = [[], []];
  await compareCheckouts(unpinned, [broken, scenario([], [])], {
    ...OPTIONS,
    onResult: ({ name }) => measured.push(name),
    onFailure: ({ name }) => failed.push(name),
  });
  expect([failed, measured]).toEqual([["broken"], ["one"]]);
  expect(stages.filter(({ dir }) => existsSync(dir))).toEqual([]);
});
