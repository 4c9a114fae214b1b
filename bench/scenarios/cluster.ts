import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import type { Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { median } from "../harness/statistics.ts";
import { PATHS, patch, post } from "../subject/client.ts";
import { startCluster } from "../subject/cluster.ts";
import { KEY } from "../subject/fill.ts";
import { databaseOf, install } from "../subject/installation.ts";

/** Changes of a round, one after the other. */
const CHANGES = 300;

const NODES = 10;

/** Milliseconds for which a cluster with nothing to do is watched. */
const WATCHED = 10_000;

/** Milliseconds after which all nodes have joined a database that was restarted. */
const SETTLED = 5_000;

const three = once((stage) => startCluster(stage, 3));

export const clusterScenarios: readonly Scenario[] = [
  {
    name: "change-three-nodes",
    group: "cluster",
    work: "update on one of 3 nodes, all of them healthy: median",
    against: "the same on a node that is alone",
    unit: "ms",
    judged: "difference",
    prepare: async (stage) => {
      const [{ installation }, alone] = [await three(stage), await install(stage)];
      return { subject: await changes(installation.server.url), baseline: await changes(alone.server.url) };
    },
  },
  {
    name: "change-stopped-node",
    group: "cluster",
    work: "update while one of 3 nodes is stopped (SIGSTOP)",
    against: "absolute time",
    unit: "s",
    judged: "value",
    rounds: 3,
    prepare: async (stage) => {
      const { installation, others } = await three(stage);
      const change = await changeOf(installation.server.url);
      return { subject: () => whileStopped(others[0]?.pid ?? 0, change), baseline: null };
    },
  },
  {
    name: "cluster-statements",
    group: "cluster",
    work: `statements a second of ${NODES} nodes with nothing to do`,
    against: "absolute count (pg_stat_statements)",
    unit: "statements/s",
    judged: "value",
    rounds: 1,
    prepare: async (stage) => ({ subject: await statements(stage), baseline: null }),
  },
];

/** The median time of a change in milliseconds. */
async function changes(url: string): Promise<() => Promise<number>> {
  const change = await changeOf(url);
  return async () => {
    const times: number[] = [];
    while (times.length < CHANGES) times.push(await change());
    return median(times);
  };
}

/** Changes a key of its own, and answers how long that took in milliseconds. */
async function changeOf(url: string): Promise<() => Promise<number>> {
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

async function statements(stage: Stage): Promise<() => Promise<number>> {
  const { installation } = await startCluster(stage, NODES);
  const sql = databaseOf(stage, { databaseUrl: installation.superuserUrl });
  await countStatements(sql, installation.databasePid);
  await sleep(SETTLED);
  return async () => {
    await sql`SELECT pg_stat_statements_reset()`;
    await sleep(WATCHED);
    const [row] = await sql`
      SELECT sum(calls)::int AS count FROM pg_stat_statements JOIN pg_roles ON pg_roles.oid = userid
      WHERE rolname <> current_user`;
    return (row?.count ?? 0) / (WATCHED / 1000);
  };
}

/** Has PostgreSQL count statements, which it does when it is started with the library for it. */
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
