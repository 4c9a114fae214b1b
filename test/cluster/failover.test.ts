import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Sql } from "postgres";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type ChangeWork, propagating } from "../../src/postgres/cluster/change-committer.ts";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import type { KeyStatement } from "../../src/postgres/cluster/group-commit.ts";
import { createRenewLease, sendBarrier } from "../../src/postgres/cluster/leases.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { lsn, serverId } from "../../src/postgres/connection/server-position.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { newKey } from "../postgres/new-keys.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { noNodes } from "../support/no-cluster.ts";
import { operator } from "../support/principal.ts";
import { type PostgresServer, startPrimary } from "../support/standby.ts";
import { newNode, TTL } from "./nodes.ts";

/** A primary with a synchronous standby, and a standby that is promoted: two servers of one history, and one of another. */
let dir: string;
let primary: PostgresServer;
let standby: PostgresServer;
let promoted: PostgresServer;

beforeAll(async () => {
  dir = await mkdtemp(join(inject("testDir"), "failover-"));
  primary = await startPrimary(dir);
  standby = await primary.addStandby("s1");
  promoted = await primary.addStandby("s2");
  await promoted.promote();
  await primary.configure({ synchronous_standby_names: "FIRST 1 (s1)" });
}, 60_000);
afterAll(async () => {
  for (const server of [promoted, standby, primary]) await server.close();
  await rm(dir, { recursive: true, force: true });
});

const isMade = () => true;

test("a lease is not extended by a renewal on another server than the feed's", async () => {
  let url = primary.url();
  const node = await newNode(primary.url(), "a", {
    renew: (renewal, signal) => createRenewLease(url)(renewal, signal),
  });
  await node.membership.join();
  url = promoted.url();
  await eventually(async () => !node.membership.lease.isFresh);
  await eventually(async () => node.membership.unavailableReason !== null);
  expect(node.membership.unavailableReason?.message).toContain("must point to the same server");
  await expect(node.membership.renewed()).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
  url = primary.url();
  await eventually(async () => node.membership.lease.isFresh);
});

test("a change on another server than the feed's is unconfirmed, and the cache is cleared", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  const elsewhere = new Pool({ url: promoted.url(), maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const forgets = node.forgets();
  const { propagated } = await propagating(elsewhere, node.membership.propagation)((sql) => sql`SELECT 1`, {
    isMade,
  });
  await expect(propagated).rejects.toMatchObject({ code: "CHANGE_UNCONFIRMED" });
  expect(node.forgets()).toBeGreaterThan(forgets);
  expect(node.log[0]).toContain("must point to the same server");
  await elsewhere.close();
});

test("a change that a pooler runs on another server than its barrier is unconfirmed", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  const pool = new Pool({ url: primary.url(), maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const [other] = await promoted.admin`SELECT ${serverId(promoted.admin)} AS server`;
  const commit = propagating(pool, node.membership.propagation);
  const work: ChangeWork<void> = async (_sql, ranOn) => ranOn(other?.server);
  const change: KeyStatement<null> = {
    keyId: UNKNOWN_KEY_ID,
    query: (sql) => sql`SELECT ${other?.server}::text AS server`,
    resultOf: () => null,
  };
  for (const made of [work, change]) {
    const { propagated } = await commit<unknown>(made, {});
    await expect(propagated).rejects.toMatchObject({ code: "CHANGE_UNCONFIRMED" });
  }
  await pool.close();
});

test("the position of a change counts only when a standby has it, and that of a promoted server from its promotion", async () => {
  const pool = new Pool({ url: primary.url(), maxConnections: 1, statementTimeout: 10_000, prepare: true });
  const positionOf = async (sql: Sql) => (await sendBarrier(sql, null, false)).position.lsn;
  expect(await pool.run(positionOf)).toBeNull();
  for (const commit of ["local", "off"]) {
    await pool.run((sql) => sql.unsafe(`SET synchronous_commit = ${commit}`));
    expect(await pool.run(positionOf)).toBeGreaterThan(0n);
  }
  await pool.close();
  const listener = { onEvent: () => undefined, onLost: () => undefined };
  const positions = [primary, promoted].map(async (server) => {
    const feed = await createOpenFeed(server.url())(listener, 10_000);
    feed.end();
    return feed.position.promotedAt;
  });
  const { admin } = promoted;
  const [replayed] = await admin`SELECT ${lsn(admin, admin`pg_last_wal_replay_lsn()`)} AS lsn`;
  expect(await Promise.all(positions)).toEqual([null, BigInt(replayed?.lsn)]);
});

test("a read from another server than the feed's is refused, and the cache is cleared", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  const { server } = node.membership;
  const forgets = node.forgets();
  node.membership.requireServer(server ?? "", server);
  expect(node.forgets()).toBe(forgets);
  expect(() => node.membership.requireServer("1/00000001/1", server)).toThrow("is unreachable");
  expect([node.forgets() > forgets, node.membership.lease.isFresh]).toEqual([true, false]);
});

test("while the synchronous standby is unreachable no lease is extended, backends do not pile up, and the session is kept", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  await standby.pause();
  await eventually(async () => !node.membership.lease.isFresh);
  await eventually(async () => node.membership.unavailableReason !== null);
  const forgets = node.forgets();
  let most = 0;
  const end = performance.now() + 3 * TTL;
  while (performance.now() < end) {
    const [row] = await primary.admin`
      SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name LIKE 'keyhold%'`;
    most = Math.max(most, row?.count);
    await primary.admin`SELECT pg_sleep(0.1)`;
  }
  expect(most).toBeLessThanOrEqual(3);
  await standby.resume();
  await eventually(async () => node.membership.lease.isFresh);
  expect(node.forgets()).toBe(forgets);
});

test("a change whose wait for the synchronous standby is cancelled is unconfirmed, and its retry waits for the standby", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  const pool = new Pool({ url: primary.url(), maxConnections: 2, statementTimeout: 10_000, prepare: true });
  await primary.admin`CREATE TABLE IF NOT EXISTS changes (made boolean)`;
  await primary.admin`GRANT ALL ON changes TO PUBLIC`;
  await standby.pause();
  const change = (isMade: boolean) =>
    propagating(pool, node.membership.propagation)(
      (sql) => (isMade ? sql`INSERT INTO changes VALUES (true)` : sql`SELECT FROM changes`),
      {
        isMade: () => isMade,
      },
    );
  const changing = change(true);
  await untilWaiting(
    () => primary.admin`
      SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT INTO changes%'`,
  );
  await expect((await changing).propagated).rejects.toMatchObject({ code: "CHANGE_UNCONFIRMED" });
  let isRepeated = false;
  const repeating = change(false).then(async ({ propagated }) => {
    await propagated;
    isRepeated = true;
  });
  await untilWaiting(
    () => primary.admin`
      SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%pg_logical_emit_message%'`,
  );
  expect(isRepeated).toBe(false);
  await standby.resume();
  await repeating;
  await pool.close();
});

test("changes of a transaction whose wait for the standby is cancelled are unconfirmed, and no others", async () => {
  const node = await newNode(primary.url(), "a");
  await node.membership.join();
  const pool = new Pool({ url: primary.url(), maxConnections: 2, statementTimeout: 10_000, prepare: true });
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, node.membership.propagation));
  const keys = [newKey({ kind: "issued" }), newKey({ kind: "issued" })];
  await store.insert(keys);
  const [one = "", two = ""] = keys.map(({ key }) => key.keyId);
  const rename = (keyId: string, name: string) =>
    store.change({ keyId, kind: null }, { verb: "update", name }, operator, new Date());
  await standby.pause();
  const together = [rename(one, "a"), rename(two, "b"), rename(UNKNOWN_KEY_ID, "c")];
  const outcomes = Promise.allSettled(together);
  await untilWaiting(waitingForStandby);
  const later = rename(one, "d");
  await primary.admin`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'`;
  expect(await outcomes).toMatchObject(
    [[one], [two], []].map((changedKeyIds) => ({ reason: { code: "CHANGE_UNCONFIRMED", changedKeyIds } })),
  );
  await standby.resume();
  await later;
  await pool.close();
});

test("a change without effect waits for the standby, whether it locks its key or not", async () => {
  const pool = new Pool({ url: primary.url(), maxConnections: 2, statementTimeout: 10_000, prepare: true });
  const [one, two] = [0, 1].map(() => createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes)));
  const key = newKey({ kind: "issued" });
  await one?.insert([key]);
  await standby.pause();
  let done = 0;
  const changes = [
    one?.change({ keyId: UNKNOWN_KEY_ID, kind: null }, { verb: "enable" }, operator, new Date()),
    two?.change({ keyId: key.key.keyId, kind: null }, { verb: "enable" }, operator, new Date()),
  ].map((change) => change?.then(() => done++));
  await eventually(async () => (await waitingForStandby()).length === 2);
  expect(done).toBe(0);
  await standby.resume();
  await Promise.all(changes);
  await pool.close();
});

/** The changes whose commits wait for the standby. */
function waitingForStandby() {
  return primary.admin`
    SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'keyhold'`;
}

/** Polls until there is a row. A renewal that waits for the standby is cancelled: it holds the lock of NOTIFY, for which commits wait. */
function untilWaiting(find: () => Promise<readonly unknown[]>): Promise<void> {
  return eventually(async () => {
    await primary.admin`
      SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'keyhold lease'`;
    return (await find()).length > 0;
  });
}

test("a renewal whose wait for the synchronous standby is cancelled is not replicated", async () => {
  const renewLease = createRenewLease(primary.url());
  const replicated: boolean[] = [];
  const node = await newNode(primary.url(), "a", {
    renew: async (renewal, signal) => {
      const renewed = await renewLease(renewal, signal);
      replicated.push(renewed.isReplicated);
      return renewed;
    },
  });
  await node.membership.join();
  await eventually(async () => replicated.includes(true));
  expect(replicated).not.toContain(false);
  await standby.pause();
  await eventually(async () => {
    await primary.admin`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`;
    return replicated.includes(false);
  });
  await standby.resume();
});
