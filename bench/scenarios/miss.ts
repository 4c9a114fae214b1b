import type { Fixture } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS } from "../subject/client.ts";
import { verifyAll } from "../subject/fill.ts";
import { installSeeded } from "../subject/seeded.ts";

const FEW = 10_000;
const MANY = 5_000_000;

/** Spread over all keys, so that reads are spread over the pages of the index. */
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
    prepare: async (fixture) => ({ subject: await missTime(fixture, MANY), baseline: await missTime(fixture, FEW) }),
  },
];

/** Measures the milliseconds of one verification that bypasses the cache. */
async function missTime(fixture: Fixture, count: number): Promise<Measure> {
  const { installation, credentials } = await installSeeded(fixture, { count, credentials: CREDENTIALS });
  await verifyAll(installation.server.url, credentials);
  const rate = httpLoad(fixture, {
    url: installation.server.url + PATHS.verify,
    headers: { ...JSON_HEADERS, "cache-control": "no-store" },
    bodies: await jsonBodies(
      fixture,
      shuffled(credentials).map((credential) => ({ credential })),
    ),
    connections: 1,
  });
  return async () => 1000 / (await rate());
}

/** Returns the items in a fixed order in which neighbors are far apart. */
function shuffled<T>(items: readonly T[]): T[] {
  const step = 1_999;
  return items.map((_, index) => items[(index * step) % items.length]).filter((item) => item !== undefined);
}
