import fc from "fast-check";
import { expect, test } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import { seeded } from "../support/seeded.ts";
import { demand, SHAPES } from "./demand.ts";
import { debtOf, inVirtualTime, lifetimeOf, type Mutation, Simulation } from "./simulation.ts";
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

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

/** Returns by how much the fullest window exceeds the later limit, after the change, and the larger one, before and after it. */
async function excessOf({ before, after, excess, ...options }: Change, mutation?: Mutation) {
  const [first, then] = [
    { ...common, ...before },
    { ...common, ...after },
  ];
  const simulation = await inVirtualTime(5_000, () => {
    const started = new Simulation({ ...options, limit: first }, mutation);
    const rate = (excess * Math.max(before.burst, after.burst)) / 2_000;
    demand(started, { shape: options.demand, rate, random: seeded(options.seed) });
    setTimeout(() => started.change(then), 2_000);
    return started;
  });
  const fixed = (one: RateLimit) =>
    one.burst + (lifetimeOf(one) * one.quota) / one.window + 2 * options.nodes * debtOf(one, options.nodes);
  const excessBeyond = (admitted: readonly number[], one: RateLimit) =>
    fullestWindow(admitted, { fixed: fixed(one), rate: one.quota / one.window, allowances: [] }).excess;
  const larger = { ...first, burst: Math.max(first.burst, then.burst), quota: Math.max(first.quota, then.quota) };
  return { after: excessBeyond(simulation.admittedSince, then), throughout: excessBeyond(simulation.admitted, larger) };
}

test("after a change the new limit holds, and the larger one before and after together", async () => {
  const property = fc.asyncProperty(change, async (options) => {
    const { after, throughout } = await excessOf(options);
    expect(after).toBeLessThanOrEqual(1e-6);
    expect(throughout).toBeLessThanOrEqual(1e-6);
  });
  await fc.assert(property, { numRuns: Number(process.env.KEYHOLD_LIMIT_RUNS ?? 40) });
});

const limit = { quota: 100, window: 10_000 } as const;
const raised: Omit<Change, "seed" | "demand"> = {
  ...{ before: { ...limit, burst: 10 }, after: { ...limit, burst: 200 } },
  ...{ nodes: 4, delay: 300, failures: 0, excess: 3 },
};

test.for([
  { what: "grants by the limit of its bucket", mutation: {} },
  { what: "that changes the bucket back is noticed", mutation: { resizes: true } },
] as const)("a statement with the earlier limit, which takes effect after a raise, $what", async ({ mutation }) => {
  let most = Number.NEGATIVE_INFINITY;
  for (let seed = 1; seed <= 6; seed++)
    for (const demand of SHAPES)
      most = Math.max(most, (await excessOf({ ...raised, seed, demand }, mutation)).throughout);
  if ("resizes" in mutation) expect(most).toBeGreaterThan(1);
  else expect(most).toBeLessThanOrEqual(1e-6);
});
