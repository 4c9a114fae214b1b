import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { median } from "../harness/statistics.ts";
import { PATHS, patch, post } from "../subject/client.ts";
import { startCluster } from "../subject/cluster.ts";
import { KEY } from "../subject/fill.ts";
import { databaseOf, install } from "../subject/installation.ts";
import { updateRate } from "./changes.ts";

/** Sequential changes in a round. */
const CHANGES = 300;

const NODES = 10;

/** Milliseconds for which the statements of an idle cluster are counted. */
const COUNTING_TIME = 10_000;

/** Milliseconds after which all nodes have joined again after a restart of the database. */
const JOIN_TIME = 5_000;

const threeNodes = once((fixture) => startCluster(fixture, 3));
const oneNode = once((fixture) => install(fixture));

const updates = (name: string, clients: string, connections: number): Scenario => ({
  name,
  group: "cluster",
  work: `update on one of 3 nodes, ${clients}`,
  against: "the same on a single node",
  unit: "requests/s",
  judged: "ratio",
  prepare: async (fixture) => {
    const [{ installation }, alone] = [await threeNodes(fixture), await oneNode(fixture)];
    return {
      subject: await updateRate(fixture, installation, connections),
      baseline: await updateRate(fixture, alone, connections),
    };
  },
});

export const clusterScenarios: readonly Scenario[] = [
  {
    name: "change-three-nodes",
    group: "cluster",
    work: "update on one of 3 nodes, all of them healthy: median",
    against: "the same on a single node",
    unit: "ms",
    judged: "difference",
    prepare: async (fixture) => {
      const [{ installation }, alone] = [await threeNodes(fixture), await oneNode(fixture)];
      return {
        subject: await medianChangeTime(installation.server.url),
        baseline: await medianChangeTime(alone.server.url),
      };
    },
  },
  updates("update-three-nodes", "64 clients", 64),
  updates("update-one-client-three-nodes", "1 client", 1),
  {
    name: "change-stopped-node",
    group: "cluster",
    work: "update while one of 3 nodes is stopped (SIGSTOP)",
    against: "absolute time",
    unit: "s",
    judged: "value",
    rounds: 3,
    prepare: async (fixture) => {
      const { installation, others } = await threeNodes(fixture);
      const change = await timedChange(installation.server.url);
      return { subject: () => whileStopped(others[0]?.pid ?? 0, change), baseline: null };
    },
  },
  {
    name: "cluster-statements",
    group: "cluster",
    work: `statements a second of ${NODES} idle nodes`,
    against: "absolute count (pg_stat_statements)",
    unit: "statements/s",
    judged: "value",
    rounds: 1,
    prepare: async (fixture) => ({ subject: await statementRate(fixture), baseline: null }),
  },
];

/** Returns a function that resolves to the median time of a change in milliseconds. */
async function medianChangeTime(url: string): Promise<() => Promise<number>> {
  const change = await timedChange(url);
  return async () => {
    const times: number[] = [];
    while (times.length < CHANGES) times.push(await change());
    return median(times);
  };
}

/** Creates a key and returns a function that changes it and resolves to the milliseconds that took. */
async function timedChange(url: string): Promise<() => Promise<number>> {
  const { issued_api_key: key } = await post(url + PATHS.issued, KEY);
  let made = 0;
  return async () => {
    const start = performance.now();
    await patch(`${url}${PATHS.issued}/${key.key_id}`, { name: `change ${++made}` });
    return performance.now() - start;
  };
}

async function whileStopped(pid: number, change: () => Promise<number>): Promise<number> {
  process.kill(pid, "SIGSTOP");
  try {
    return (await change()) / 1000;
  } finally {
    process.kill(pid, "SIGCONT");
    await sleep(1_000);
  }
}

async function statementRate(fixture: Fixture): Promise<() => Promise<number>> {
  const { installation } = await startCluster(fixture, NODES);
  const sql = databaseOf(fixture, { databaseUrl: installation.superuserUrl });
  await countStatements(sql, installation.databasePid);
  await sleep(JOIN_TIME);
  return async () => {
    await sql`SELECT pg_stat_statements_reset()`;
    await sleep(COUNTING_TIME);
    const [row] = await sql`
      SELECT sum(calls)::int AS count FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
      WHERE rolname <> current_user`;
    return (row?.count ?? 0) / (COUNTING_TIME / 1000);
  };
}

/** Makes PostgreSQL count statements: restarts it with the library, then creates the extension. */
async function countStatements(sql: Sql, pid: number): Promise<void> {
  await sql`ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`;
  process.kill(pid, "SIGINT");
  for (let attempts = 0; ; attempts++) {
    try {
      await sql`CREATE EXTENSION pg_stat_statements`;
      await sql`SELECT FROM pg_stat_statements`;
      return;
    } catch (error) {
      if (attempts === 100) throw error;
      await sql`DROP EXTENSION IF EXISTS pg_stat_statements`.catch(() => undefined);
      await sleep(100);
    }
  }
}
