import type { Measure, Scenario } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { verifyAll } from "../subject/fill.ts";
import { installSeeded } from "../subject/seeded.ts";

const FEW = 10_000;
const MANY = 5_000_000;

/** Spread over all keys, so that the pages of the index are not always the same. */
const CREDENTIALS = 5_000;

export const missScenarios: readonly Scenario[] = [
  {
    name: "verify-miss",
    group: "miss",
    work: "verify miss at 5,000,000 keys",
    against: "the same at 10,000 keys, one request after the other",
    unit: "ms",
    judged: "ratio",
    long: 1200,
    prepare: async (stage) => ({ subject: await missTime(stage, MANY), baseline: await missTime(stage, FEW) }),
  },
];

/** Milliseconds of one verification that the cache has no part in. */
async function missTime(stage: Stage, count: number): Promise<Measure> {
  const { installation, credentials } = await installSeeded(stage, { count, credentials: CREDENTIALS });
  await verifyAll(installation.server.url, credentials);
  const rate = httpLoad(stage, {
    url: installation.server.url + PATHS.verify,
    headers: { ...JSON_HEADERS, "cache-control": "no-store" },
    bodies: await jsonBodies(
      stage,
      shuffled(credentials).map((credential) => ({ credential })),
    ),
    connections: 1,
  });
  return async () => 1000 / (await rate());
}

/** A fixed disorder: every place once, each far from the one before. */
function shuffled<T>(items: readonly T[]): T[] {
  const step = 1_999;
  return items.map((_, index) => items[(index * step) % items.length]).filter((item) => item !== undefined);
}
