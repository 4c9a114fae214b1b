import { expect, test } from "vitest";
import type { RateLimit } from "../../src/domain/rate-limit.ts";
import type { BorrowerStats } from "../../src/limits/borrower.ts";
import { Limiter } from "../../src/limits/limiter.ts";
import { seededBy } from "../support/seeded.ts";
import { BucketModel } from "./bucket-model.ts";
import { type DemandOptions, demand } from "./demand.ts";
import { inVirtualTime, Simulation } from "./simulation.ts";

const random = seededBy("KEYHOLD_LIMIT_USE_SEED");

const SECOND = 1_000;
const common = { name: "requests", enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" } as const;
const shapes: Record<string, Pick<RateLimit, "quota" | "window" | "burst">> = {
  "1000/s": { quota: 1_000, window: SECOND, burst: 1_000 },
  "1000/s, burst 100": { quota: 1_000, window: SECOND, burst: 100 },
  "60/min": { quota: 60, window: 60 * SECOND, burst: 60 },
  "60/min, burst 1": { quota: 60, window: 60 * SECOND, burst: 1 },
  "10/h": { quota: 10, window: 3_600 * SECOND, burst: 10 },
};

interface Use {
  readonly nodes: number;
  readonly shape: DemandOptions["shape"];
  /** Demand as a part of the limit. */
  readonly part: number;
  readonly fields: (typeof shapes)[string];
}

/** Runs for six seconds or until the bucket has refilled three times. Counts what is admitted after it was emptied, in the last two thirds. */
async function use({ nodes, shape, part, fields }: Use) {
  const rate = rateOf(fields);
  const length = 3 * Math.max(2 * SECOND, Math.ceil(Math.max(fields.burst, 10) / rate));
  const limit = { name: "requests", enforcement: "ENFORCED", onDemand: false, onOutage: "DENY", ...fields } as const;
  const simulation = await inVirtualTime(length, () => {
    const started = new Simulation({ seed: random.below(2 ** 31), nodes, limit, delay: 1, failures: 0 });
    demand(started, { shape, rate: part * rate, random: random.fork() });
    return started;
  });
  const admitted = simulation.admitted.filter((time) => time >= length / 3).length;
  return { admitted: admitted / ((rate * length * 2) / 3), denied: simulation.denied / simulation.presented };
}

function rateOf({ quota, window }: Use["fields"]): number {
  return quota / window;
}

test.for(Object.entries(shapes))("%s: demand above the limit is admitted up to it", async ([, fields]) => {
  for (const [nodes, shape] of [
    [3, "STEADY"],
    [4, "SKEWED"],
  ] as const) {
    const { admitted } = await use({ nodes, shape, part: rateOf(fields) < 0.01 ? 30 : 3, fields });
    console.info(`${nodes} nodes, ${shape}: ${(100 * admitted).toFixed(1)} %`);
    expect.soft(admitted).toBeGreaterThanOrEqual(0.95);
  }
});

test.for(Object.entries(shapes))("%s: demand below the limit is not denied", async ([, fields]) => {
  for (const [shape, part] of [
    ["POISSON", 0.9],
    ["STEADY", 0.99],
  ] as const) {
    if (shape === "POISSON" && fields.burst < 100) continue;
    const { denied } = await use({ nodes: 3, shape, part, fields });
    console.info(`${shape} at ${part}: ${denied}`);
    expect.soft(denied).toBeLessThanOrEqual(1e-4);
  }
});

test("after idling a client of three nodes gets its burst within a second", async () => {
  const limit = { ...common, ...{ quota: 60, window: 60 * SECOND, burst: 60 } };
  const starts = [0, 100, 250];
  const simulation = await inVirtualTime(300 * SECOND, () => {
    const started = new Simulation({ seed: random.below(2 ** 31), nodes: 3, limit, delay: 1, failures: 0 });
    const present = (number: number) => {
      const node = started.nodes[number % 3];
      if (node !== undefined) started.present(node);
    };
    for (const start of starts)
      for (let number = 0; number < 200; number++) setTimeout(() => present(number), start * SECOND + 4 * number);
    return started;
  });
  for (const start of starts) {
    const times = simulation.admitted.filter((time) => time >= start * SECOND && time < (start + 1) * SECOND);
    expect(times.length).toBeGreaterThanOrEqual(60);
  }
});

const wide: RateLimit = { ...common, quota: 6_000, window: 60 * SECOND, burst: 6_000 };

/** Presents verifications to one node in each millisecond of three seconds, and returns what it has requested. */
async function requestsOf(limit: RateLimit, perMillisecond: number, keys: number): Promise<BorrowerStats> {
  const model = new BucketModel();
  const limiter = await inVirtualTime(3 * SECOND, () => {
    const start = Date.now();
    const now = () => Date.now() - start;
    const started = new Limiter({
      grantTokens: (requests) =>
        new Promise((resolve) => setTimeout(() => resolve(requests.map((one) => model.grant(one, now()))), 1)),
      returnTokens: async () => undefined,
      ...{ nodes: () => 1, monotonic: now, clock: { now: () => Date.now() } },
    });
    let number = 0;
    setInterval(() => {
      for (let left = perMillisecond; left > 0; left--)
        void started.charge({ keyId: `${number++ % keys}`, keyLimits: [limit] });
    }, 1);
    setInterval(() => void started.flush(false), SECOND);
    return started;
  });
  return limiter.stats;
}

test("5,000 verifications a second of 1,000 keys take statements for 2 % of them", async () => {
  const { statements } = await requestsOf(wide, 5, 1_000);
  console.info(`${statements} statements`);
  expect(statements).toBeLessThanOrEqual(0.02 * 15_000);
});

test("keys with two verifications a second take a row per second, and one more at first", async () => {
  const { requests } = await requestsOf(wide, 2, 1_000);
  console.info(`${requests} rows`);
  expect(requests).toBeLessThanOrEqual(1_000 * (1 + 3));
});

test("a flood of a denied key takes two statements per pause: for its debt, and for tokens", async () => {
  const fast: RateLimit = { ...common, quota: 100, window: SECOND, burst: 100 };
  const { statements } = await requestsOf(fast, 10, 1);
  console.info(`${statements} statements`);
  expect(statements).toBeLessThanOrEqual(10 + 2 * 30);
});
