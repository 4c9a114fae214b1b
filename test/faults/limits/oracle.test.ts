import fc from "fast-check";
import { expect, test } from "vitest";
import { fullest, within } from "./oracle.ts";
import { useOf } from "./quota-oracle.ts";

const NO_CRASH = { crashes: [], debt: 0 };
const admission = fc.tuple(fc.nat(3_000), fc.nat(500)).map(([began, length]) => ({ began, ended: began + length }));

test("an excess is one of a window that has these verifications, and those that last longer are not in it", () => {
  const at = (began: number, ended: number) => ({ began, ended });
  const burst = Array.from({ length: 10 }, () => at(1_000, 1_100));
  expect(fullest(burst, { fixed: 4, rate: 0.01, ...NO_CRASH })).toMatchObject({ excess: 5, part: 2 });
  expect(fullest([...burst, at(0, 1_100)], { fixed: 4, rate: 0.01, ...NO_CRASH }).excess).toBe(5);
  expect(fullest(burst, { fixed: 4, rate: 0.01, crashes: [1_050], debt: 3 }).excess).toBe(2);
  expect(within([...burst, at(500, 2_000)], { from: 900, to: 1_500 })).toHaveLength(10);
});

test("no time within the verifications at which tokens were spent gives less", () => {
  const spent = fc.array(fc.tuple(admission, fc.double({ min: 0, max: 1, noNaN: true })), { minLength: 1 });
  const property = fc.property(spent, fc.constantFrom(0, 1, 5), (all, fixed) => {
    const times = all.map(([{ began, ended }, part]) => began + part * (ended - began));
    const { excess } = fullest(
      all.map(([one]) => one),
      { fixed, rate: 0.002, ...NO_CRASH },
    );
    const most = Math.max(
      ...times.flatMap((from) =>
        times.map((to) => times.filter((time) => from <= time && time <= to).length - fixed - 0.002 * (to - from)),
      ),
    );
    expect(excess).toBeLessThanOrEqual(most + 1e-9);
  });
  fc.assert(property);
});

test("a quota loses what its nodes hold at each fault, and what failed then before its node denied", () => {
  const at = (began: number, node = "1") => ({ node, began, ended: began + 10 });
  const answers = {
    admitted: [...Array.from({ length: 50 }, (_, index) => at(1_000 + index)), at(95)],
    denied: [at(3_000)],
    unanswered: [at(300), at(1_600), at(1_620), at(1_640), at(2_990), at(3_100), at(9_000)],
    unexpected: [],
  };
  const faults = [at(500), at(1_500), at(2_500), at(8_000)];
  const { certain, isUsedUp, lost } = useOf(answers, faults, {
    ...{ limit: 100, tolerance: 10, nodes: 1, inFlight: 2, from: 100, to: 5_000 },
  });
  expect([certain, isUsedUp]).toEqual([50, true]);
  const [uncertain, spontaneous, atFaults] = [1, 1, 0 + 2 + 1];
  expect(lost).toBeCloseTo(uncertain + spontaneous + atFaults + 0.05 * (100 + 100 + 50));
});
