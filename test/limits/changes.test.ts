import fc from "fast-check";
import { expect, test } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { seeded } from "../support/seeded.ts";
import { demand, SHAPES } from "./demand.ts";
import { debtOf, inVirtualTime, lifetimeOf, Simulation } from "./simulation.ts";
import { fullestWindow } from "./window-bound.ts";

const shape = fc.record({
  quota: fc.constantFrom(10, 100),
  window: fc.constant(10_000),
  burst: fc.constantFrom(10, 200, 2_000),
});
const change = fc.record({
  seed: fc.nat(),
  nodes: fc.constantFrom(1, 1, 2, 4),
  delay: fc.constantFrom(0, 5, 60, 300),
  failures: fc.constantFrom(0, 10),
  demand: fc.constantFrom(...SHAPES),
  excess: fc.constantFrom(1, 3),
  ...{ before: shape, after: shape },
});

const common = { name: "requests", enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" } as const;

// With more nodes, a statement of the earlier limit may follow one of the later limit (docs/limits.md).
test("after a change the new limit holds, and on one node the larger one before and after together", async () => {
  const property = fc.asyncProperty(change, async ({ before, after, excess, ...options }) => {
    const [first, then] = [
      { ...common, ...before },
      { ...common, ...after },
    ];
    const simulation = await inVirtualTime(5_000, () => {
      const started = new Simulation({ ...options, limit: first });
      const rate = (excess * Math.max(before.burst, after.burst)) / 2_000;
      demand(started, { shape: options.demand, rate, random: seeded(options.seed) });
      setTimeout(() => started.change(then), 2_000);
      return started;
    });
    const fixed = (one: RateLimit) =>
      one.burst + (lifetimeOf(one) * one.quota) / one.window + 2 * options.nodes * debtOf(one, options.nodes);
    const boundOf = (one: RateLimit, rate: number) => ({ fixed: fixed(one), rate, allowances: [] });
    const since = fullestWindow(simulation.admittedSince, boundOf(then, then.quota / then.window));
    expect(since.excess).toBeLessThanOrEqual(1e-6);
    const larger = { ...first, burst: Math.max(first.burst, then.burst), quota: Math.max(first.quota, then.quota) };
    const { excess: over } = fullestWindow(simulation.admitted, boundOf(larger, larger.quota / larger.window));
    if (options.nodes === 1) expect(over).toBeLessThanOrEqual(1e-6);
  });
  await fc.assert(property, { numRuns: Number(process.env.KEYHOLD_LIMIT_RUNS ?? 40) });
});
