import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import type { Fixture } from "../harness/fixture.ts";
import { residentMemory } from "../harness/memory.ts";
import type { Scenario } from "../harness/scenario.ts";
import type { ServerProcess } from "../harness/server.ts";
import { verifyAll } from "../subject/fill.ts";
import { databaseOf, type Installation, install } from "../subject/installation.ts";
import { installSeeded } from "../subject/seeded.ts";

export const memoryScenarios: readonly Scenario[] = [
  {
    name: "memory-idle",
    group: "process",
    work: "memory of the server when idle",
    against: "absolute resident memory",
    unit: "MB",
    judged: "value",
    rounds: 1,
    prepare: async (fixture) => {
      const { server } = await install(fixture);
      return { subject: () => settledMemory(server), baseline: null };
    },
  },
  {
    name: "memory-cached",
    group: "memory",
    work: "memory of the server with 1,000,000 cached keys",
    against: "the same when idle",
    unit: "MB",
    judged: "difference",
    rounds: 1,
    long: 300,
    prepare: async (fixture) => {
      const count = 1_000_000;
      const { installation, credentials } = await installSeeded(fixture, { count, credentials: count });
      const fresh = await restarted(fixture, installation);
      const idle = await settledMemory(fresh.server);
      return {
        baseline: async () => idle,
        subject: async () => {
          await verifyAll(fresh.server.url, credentials);
          const memory = await settledMemory(fresh.server);
          await requireCached(databaseOf(fixture, fresh), fresh.server.url, credentials);
          return memory;
        },
      };
    },
  },
];

async function restarted(fixture: Fixture, { server, dataDir }: Installation): Promise<Installation> {
  await server.stop();
  return install(fixture, { dataDir });
}

/** Throws unless these credentials are verified without the database: the table is renamed during the check. */
async function requireCached(sql: Sql, url: string, credentials: readonly string[]): Promise<void> {
  await sql`ALTER TABLE api_keys RENAME TO api_keys_renamed`;
  try {
    await verifyAll(url, credentials);
  } finally {
    await sql`ALTER TABLE api_keys_renamed RENAME TO api_keys`;
  }
}

/** Seconds until the garbage of earlier work has been collected. */
const SETTLING = 10;

/** Returns the minimum resident memory of a process over some seconds, in MB. */
async function settledMemory({ pid }: ServerProcess): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < SETTLING; second++) {
    await sleep(1000);
    least = Math.min(least, await residentMemory(pid));
  }
  return least;
}
