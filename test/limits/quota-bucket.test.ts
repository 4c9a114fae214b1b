import fc from "fast-check";
import { expect, test } from "vitest";
import type { Quota } from "../../src/domain/rate-limit.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import { QuotaBucket } from "../../src/limits/quota-bucket.ts";
import { seeded } from "../support/seeded.ts";
import { inVirtualTime } from "./simulation.ts";

const LIMIT = 1_000;
const quota: Quota = { name: "requests", limit: LIMIT, period: "DAY", anchorTime: 0, adjustTime: null };
const reset = { time: 1e15, after: 86_400_000 };

interface Use {
  readonly seed: number;
  /** The number that the node knows. */
  readonly nodes: number | null;
  /** The time of a statement in each direction, in milliseconds. */
  readonly delay: number;
  /** Verifications per millisecond, at most. */
  readonly most: number;
  /** Percent of the statements whose answers are lost. */
  readonly losses: number;
}

/**
 * Uses a quota up on one node. Returns by how much it held or requested more than waits and its part of what clients had left, or more than
 * waits after a failure, at most.
 */
async function excessOf({ seed, nodes, delay, most, losses }: Use) {
  const random = seeded(seed);
  const wait = () => new Promise((resolve) => setTimeout(resolve, random.below(delay + 1)));
  const counts = { waiting: 0, admitted: 0, denied: 0, failed: 0, lost: 0 };
  let [level, excess, hasFailed] = [0, Number.NEGATIVE_INFINITY, false];
  const note = (wanted: number) => {
    const left = LIMIT - counts.admitted - counts.lost;
    const held = level - counts.admitted - counts.lost;
    excess = Math.max(excess, held + wanted - counts.waiting - (0.05 * left) / (nodes ?? Number.POSITIVE_INFINITY));
    if (hasFailed) excess = Math.max(excess, wanted - counts.waiting);
  };
  await inVirtualTime(2_500, () => {
    const start = Date.now();
    const limiter = new Limiter({
      grantTokens: async ([{ wanted } = { wanted: 0 }]) => {
        note(wanted);
        await wait();
        const granted = Math.min(wanted, LIMIT - level);
        const grant = { granted, level: level + granted, reset };
        level += granted;
        hasFailed = random.below(100) < losses;
        if (hasFailed) counts.lost += granted;
        await wait();
        if (hasFailed) throw new Error("the answer was lost");
        return [grant];
      },
      ...{ returnTokens: async () => undefined, nodes: () => nodes },
      ...{ monotonic: () => Date.now() - start, clock: { now: () => Date.now() } },
    });
    const present = async () => {
      counts.waiting++;
      const denied = await Promise.resolve(limiter.charge({ keyId: "1", keyLimits: [quota] })).then(
        (charged) => charged.denied !== null,
        () => null,
      );
      counts.waiting--;
      counts[denied === null ? "failed" : denied ? "denied" : "admitted"]++;
    };
    setInterval(() => {
      for (let left = random.below(most + 1); left > 0; left--) void present();
    }, 1);
  });
  return { excess, ...counts };
}

const use = fc.record({
  seed: fc.nat(),
  nodes: fc.constantFrom(null, 1, 2, 5),
  delay: fc.constantFrom(0, 3, 40, 300),
  most: fc.constantFrom(1, 3, 10),
  losses: fc.constantFrom(0, 10, 70),
});

test("a node holds its part of 5 % of what is left of a quota beyond what waits, and all that is not lost can be used", async () => {
  const property = fc.asyncProperty(use, async (options) => {
    const { excess, admitted, denied, lost } = await excessOf(options);
    expect(excess).toBeLessThanOrEqual(1e-9);
    expect(denied > 0 ? admitted + lost : LIMIT).toBe(LIMIT);
  });
  await fc.assert(property, { numRuns: Number(process.env.KEYHOLD_LIMIT_RUNS ?? 40) });
});

test("tokens that others may spend first do not reduce what is requested for verifications that wait", () => {
  const bucket = new QuotaBucket("key/1/requests:quota", quota);
  const requested = bucket.request(2, 0, null);
  bucket.take({ granted: 2, level: 2, reset }, requested, 0);
  expect(bucket.request(3, 1, null).wanted).toBe(3);
});
