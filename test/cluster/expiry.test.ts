import { fork } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Sql } from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import { replayAuditLog } from "../support/audit-replay.ts";
import { eventually, servingBy } from "../support/keyhold.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { type PostgresServer, startPrimary } from "../support/standby.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** Three nodes, whose clocks are days apart, record the expiry of each key once, while nodes and the database fail. */

const DAY = 86_400_000;
const NODE = resolve(import.meta.dirname, "../faults/node.ts");

/** Keys that expire in 12 hours, and keys that have expired; a node takes 500 a second. */
const COUNT = 6_000;

async function startNode(url: string, clock: number) {
  const env = {
    PATH: process.env.PATH,
    ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off", KEYHOLD_DATABASE_URL: url, KEYHOLD_ROOT_SECRET: ROOT_SECRET },
  };
  const child = fork(NODE, [`--clock=${clock}`], { env, execArgv: [], stdio: ["ignore", "pipe", "pipe", "ipc"] });
  const node = await servingBy(child);
  onTestFinished(async () => {
    node.kill("SIGKILL");
    await node.ended;
  });
  return node;
}

/** The keys have expired during a downtime of all servers, which have recorded nothing of the last week. */
async function addKeys(sql: Sql): Promise<void> {
  await sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, expire_time, digest, digest_key_id)
    SELECT gen_random_uuid(), 'issued', 'a key', 'actor_1', '{}', '{}', '', now() - interval '1 year', now() - interval '1 year',
      now() + CASE n % 2 WHEN 0 THEN interval '-12 h' ELSE interval '12 h' END, sha256(n::text::bytea), 'k1'
    FROM generate_series(1, ${2 * COUNT}) AS n`;
  await sql`UPDATE expiry_sweeps SET expire_time = now() - interval '7 days'`;
}

async function countOf(sql: Sql): Promise<Record<string, number>> {
  const rows = await sql`
    SELECT action, count(*)::int AS count FROM (SELECT action FROM audit_events UNION ALL SELECT action FROM audit_pending) AS event
    WHERE action IN ('key.expiring', 'key.expired') GROUP BY action`;
  return Object.fromEntries(rows.map(({ action, count }) => [action, count]));
}

const total = async (sql: Sql) => Object.values(await countOf(sql)).reduce((sum, count) => sum + count, 0);

test("three nodes record each expiry once, through crashes of nodes and a failover", async () => {
  const dir = await mkdtemp(join(inject("testDir"), "expiry-"));
  const primary = await startPrimary(dir);
  onTestFinished(() => primary.close());
  const standby: PostgresServer = await primary.addStandby("standby");
  onTestFinished(() => standby.close());
  await primary.configure({ synchronous_standby_names: "standby" });
  await addKeys(primary.admin);
  const proxy = await TcpProxy.start(`tcp://${primary.address}`);
  onTestFinished(() => proxy.close());
  const url = primary.url(`127.0.0.1:${proxy.port}`);
  const [first] = await Promise.all([0, 40 * DAY, -40 * DAY].map((clock) => startNode(url, clock)));
  await eventually(async () => (await total(primary.admin)) > 1_000);
  first?.kill("SIGKILL");
  await first?.ended;
  const replacement = startNode(url, 20 * DAY);
  await eventually(async () => (await total(primary.admin)) > 4_000);
  // Records nothing while the node starts, which takes long on a busy machine.
  const session = await primary.admin.reserve();
  await session`BEGIN`;
  await session`SELECT FROM expiry_sweeps FOR UPDATE`;
  await replacement;
  expect(await total(primary.admin)).toBeLessThan(2 * COUNT);
  await primary.kill();
  await standby.promote();
  await standby.configure({ synchronous_standby_names: null });
  proxy.redirect(standby.port);
  await eventually(async () => (await total(standby.admin)) >= 2 * COUNT);
  await eventually(async () => (await standby.admin`SELECT FROM audit_pending`).length === 0);
  expect(await countOf(standby.admin)).toEqual({ "key.expiring": COUNT, "key.expired": COUNT });
  const [row] = await standby.admin`
    SELECT count(DISTINCT key_id)::int AS keys, array_agg(DISTINCT after ->> 'threshold') AS thresholds, array_agg(DISTINCT call ->> 'method') AS methods
    FROM audit_events WHERE action IN ('key.expiring', 'key.expired')`;
  expect(row).toMatchObject({ keys: 2 * COUNT, thresholds: "{86400s,NULL}", methods: "{local}" });
  expect((await replayAuditLog(standby.admin)).violations).toEqual([]);
});
