import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { compareCheckouts } from "../../bench/harness/compare.ts";
import { type Fixture, THIS_CHECKOUT } from "../../bench/harness/fixture.ts";
import type { Pinning } from "../../bench/harness/pinning.ts";
import type { Result } from "../../bench/harness/results.ts";
import type { Scenario } from "../../bench/harness/scenario.ts";
import { comparisonText } from "../../bench/harness/text.ts";

const unpinned: Pinning = {
  unpinned: "not in a test",
  on: (_, [program = "", ...args]) => [program, ...args],
  move: () => {},
};

const OPTIONS = { other: "/elsewhere", starts: 2, rounds: 2, seconds: 1 };

/** A scenario with a different figure for each start: 10, 20, 30, … */
function scenario(fixtures: Fixture[], turns: string[]): Scenario {
  return {
    name: "one",
    group: "test",
    work: "work",
    against: "nothing",
    unit: "requests/s",
    judged: "value",
    prepare: async (fixture) => {
      const figure = 10 * fixtures.push(fixture);
      const subject = async () => {
        turns.push(fixture.checkout);
        return figure;
      };
      return { subject, baseline: null };
    },
  };
}

test("two checkouts alternate, each with a new fixture for each start", async () => {
  const [fixtures, turns, results]: [Fixture[], string[], Result[]] = [[], [], []];
  await compareCheckouts(unpinned, [scenario(fixtures, turns)], {
    ...OPTIONS,
    onResult: (result) => results.push(result),
    onFailure: (_, error) => expect.unreachable(String(error)),
  });
  expect(turns).toEqual(Array.from({ length: 6 }, () => [THIS_CHECKOUT, "/elsewhere"]).flat());
  expect(new Set(fixtures.map(({ dir }) => dir)).size).toBe(4);
  expect(fixtures.filter(({ dir }) => existsSync(dir))).toEqual([]);
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

test("after a failed scenario its fixtures are closed, and the others run", async () => {
  const fixtures: Fixture[] = [];
  const broken: Scenario = {
    ...scenario([], []),
    name: "broken",
    prepare: async (fixture) => {
      fixtures.push(fixture);
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
  expect(fixtures.filter(({ dir }) => existsSync(dir))).toEqual([]);
});
