import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { once } from "../harness/fixture.ts";
import { recordPauses } from "../harness/gc-pauses.ts";
import { residentMemory } from "../harness/memory.ts";
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
      const { idle, installation, credentials } = await cached(fixture);
      return {
        baseline: async () => idle,
        subject: async () => {
          const memory = await settledMemory(installation.server);
          await requireCached(databaseOf(fixture, installation), installation.server.url, credentials);
          return memory;
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

/** A server that has all keys in its cache, and writes its pauses to a file. */
const cached = once(async (fixture) => {
  const count = 1_000_000;
  const seeded = await installSeeded(fixture, { count, credentials: count });
  await seeded.installation.server.stop();
  const pauses = join(fixture.dir, "gc-pauses");
  const installation = await install(fixture, {
    dataDir: seeded.installation.dataDir,
    script: [...recordPauses(pauses), programOf(fixture), "serve"],
  });
  const idle = await settledMemory(installation.server);
  await verifyAll(installation.server.url, seeded.credentials);
  return { installation, credentials: seeded.credentials, idle, pauses };
});

/** Updates cached keys one after the other during the load. */
async function change(url: string, credentials: readonly string[]): Promise<void> {
  const issued = credentials.filter((credential) => credential.startsWith("kh_")).slice(0, (SECONDS * 1000) / INTERVAL);
  for (const { key_id } of await verifyAll(url, issued)) {
    await patch(`${url}${PATHS.issued}/${key_id}`, { name: "changed" });
    await sleep(INTERVAL);
  }
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
export async function settledMemory({ pid }: ServerProcess): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < SETTLING; second++) {
    await sleep(1000);
    least = Math.min(least, await residentMemory(pid));
  }
  return least;
}
