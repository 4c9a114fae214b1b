import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { StoredLimit } from "../../src/postgres/keys/stored-limits.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import { recordPauses } from "../harness/gc-pauses.ts";
import { recordMemory, residentMemory } from "../harness/memory.ts";
import type { Scenario } from "../harness/scenario.ts";
import type { ServerProcess } from "../harness/server.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { PATHS, patch } from "../subject/client.ts";
import { verifyAll } from "../subject/fill.ts";
import { databaseOf, install, programOf } from "../subject/installation.ts";
import { installSeeded } from "../subject/seeded.ts";

/** Seconds of the load in which pauses are measured, and milliseconds between two updates. */
const SECONDS = 20;
const INTERVAL = 50;

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
      const unlimited = await cached(fixture);
      return {
        baseline: async () => unlimited.idle,
        subject: async () => {
          const memory = await settledMemory(unlimited.installation.server);
          await requireCached(fixture, unlimited);
          return memory;
        },
      };
    },
  },
  {
    name: "memory-limited",
    group: "memory",
    work: "memory of the server with 1,000,000 cached keys that have a rate limit, without garbage",
    against: "the same without limits",
    unit: "MB",
    judged: "difference",
    rounds: 1,
    long: 600,
    prepare: async (fixture) => {
      const [unlimited, limited] = [await cached(fixture), await cachedLimited(fixture)];
      return {
        baseline: () => usedMemory(unlimited),
        subject: async () => {
          await requireCached(fixture, limited);
          return usedMemory(limited);
        },
      };
    },
  },
  {
    name: "pause-cached",
    group: "memory",
    work: `longest pause of the garbage collector in ${SECONDS} s: verify of 1,000,000 cached keys, an update every ${INTERVAL} ms`,
    against: "absolute time",
    unit: "ms",
    judged: "value",
    rounds: 1,
    long: 300,
    prepare: async (fixture) => {
      const { installation, credentials, pauses } = await cached(fixture);
      const { url } = installation.server;
      const bodies = await jsonBodies(
        fixture,
        credentials.map((credential) => ({ credential })),
      );
      const load = httpLoad(
        { ...fixture, seconds: SECONDS },
        { url: url + PATHS.verify, headers: JSON_HEADERS, bodies, connections: CONNECTIONS },
      );
      return {
        baseline: null,
        subject: async () => {
          await writeFile(pauses, "");
          await Promise.all([load(), change(url, credentials)]);
          const lines = await readFile(pauses, "utf8");
          if (lines === "") throw new Error("the server recorded no pauses");
          return Math.max(...lines.trimEnd().split("\n").map(Number));
        },
      };
    },
  },
];

const LIMIT: StoredLimit = { name: "requests", quota: 1000, window: "60s", burst: 1000 };

/** Servers that have all keys in their cache, and write their pauses to a file. */
const cached = once((fixture) => cache(fixture));
const cachedLimited = once((fixture) => cache(fixture, [LIMIT]));

type Cached = Awaited<ReturnType<typeof cached>>;

async function cache(fixture: Fixture, rateLimits?: readonly StoredLimit[]) {
  const count = 1_000_000;
  const seeded = await installSeeded(fixture, { count, credentials: count, ...(rateLimits && { rateLimits }) });
  await seeded.installation.server.stop();
  const folder = await mkdtemp(join(fixture.dir, "server-"));
  const [pauses, memory] = [join(folder, "gc-pauses"), join(folder, "memory")];
  const installation = await install(fixture, {
    dataDir: seeded.installation.dataDir,
    script: [...recordPauses(pauses), ...recordMemory(memory), programOf(fixture), "serve"],
  });
  const idle = await settledMemory(installation.server);
  await verifyAll(installation.server.url, seeded.credentials);
  return { installation, credentials: seeded.credentials, idle, pauses, memory };
}

/** Updates cached keys one after the other during the load. */
async function change(url: string, credentials: readonly string[]): Promise<void> {
  const issued = credentials.filter((credential) => credential.startsWith("kh_")).slice(0, (SECONDS * 1000) / INTERVAL);
  for (const { key_id } of await verifyAll(url, issued)) {
    await patch(`${url}${PATHS.issued}/${key_id}`, { name: "changed" });
    await sleep(INTERVAL);
  }
}

/** Throws unless all keys are verified without the table, which is renamed during the check. */
async function requireCached(fixture: Fixture, { installation, credentials }: Cached): Promise<void> {
  const sql = databaseOf(fixture, installation);
  await sql`ALTER TABLE api_keys RENAME TO api_keys_renamed`;
  try {
    await verifyAll(installation.server.url, credentials);
  } finally {
    await sql`ALTER TABLE api_keys_renamed RENAME TO api_keys`;
  }
}

/** Seconds until the garbage of earlier work has been collected. */
const SETTLING = 10;

/** Returns the minimum resident memory of a process over some seconds, in MB. */
export async function settledMemory({ pid }: ServerProcess): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < SETTLING; second++) {
    await sleep(1000);
    least = Math.min(least, await residentMemory(pid));
  }
  return least;
}

/**
 * Returns the minimum that a server uses after garbage collection, in MB, over some seconds in which it stores what it has counted. How much it
 * keeps resident beyond that depends on what it did last.
 */
async function usedMemory({ installation, memory }: Cached): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let time = 0; time < 3; time++) {
    await sleep(SETTLING * 1000);
    await writeFile(memory, "");
    process.kill(installation.server.pid, "SIGUSR2");
    let used = "";
    while (used === "") {
      await sleep(100);
      used = await readFile(memory, "utf8");
    }
    least = Math.min(least, Number(used));
  }
  return least;
}
