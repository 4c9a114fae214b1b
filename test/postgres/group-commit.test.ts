import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import type { KeyStore } from "../../src/keys/ports.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import type { KeyStatement } from "../../src/postgres/cluster/group-commit.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createKeyStore } from "../../src/postgres/key-store.ts";
import { joined, newNode } from "../cluster/nodes.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { noNodes } from "../support/no-cluster.ts";
import { operator } from "../support/principal.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** A character that text columns reject (PostgreSQL docs, 8.3). */
const BAD_NAME = "a\0b";

async function open(count: number) {
  const { url, ownerUrl, pool } = await openSchema();
  const sql = postgres(ownerUrl, { max: 5, onnotice: () => {} });
  onTestFinished(() => sql.end());
  const commit = propagating(pool, noNodes);
  const store = createKeyStore({ reads: pool, lists: pool }, commit);
  const keys = Array.from({ length: count }, () => newKey({ kind: "issued" }));
  await store.insert(keys);
  const ids = keys.map(({ key }) => key.keyId);
  const names = async () => (await sql`SELECT name FROM api_keys ORDER BY key_id`).map(({ name }) => name);
  return { url, pool, sql, commit, store, ids, names };
}

const rename = (store: KeyStore, keyId: string, name: string) =>
  store.change({ keyId, kind: null }, { verb: "update", name }, operator, new Date());

const revoke = (store: KeyStore, keyId: string) =>
  store.change(
    { keyId, kind: null },
    { verb: "revoke", reason: "SUPERSEDED", description: null },
    operator,
    new Date(),
  );

async function countAwaited(sql: Sql): Promise<number> {
  const rows = await sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return rows.length;
}

/** Holds transactions that rename a key in their COMMIT, until the returned function is called. */
async function holdCommits(sql: Sql): Promise<() => Promise<void>> {
  await sql.unsafe(`
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER held AFTER UPDATE OF name ON api_keys DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait()`);
  const holder = await sql.reserve();
  await holder`SELECT pg_advisory_lock(1)`;
  return async () => {
    await holder`SELECT pg_advisory_unlock(1)`;
    holder.release();
  };
}

test("concurrent changes share a few commits, and each returns its own key", async () => {
  const { sql, store, ids } = await open(200);
  const renamed = await Promise.all(ids.map((keyId, place) => rename(store, keyId, `name ${place}`)));
  expect(renamed.map((key) => [key?.keyId, key?.name])).toEqual(ids.map((keyId, place) => [keyId, `name ${place}`]));
  const [row] = await sql`SELECT count(DISTINCT xmin::text)::int AS count FROM api_keys`;
  expect(row?.count).toBeLessThanOrEqual(6);
});

test("changes over connections that prepare no statements share no transaction", async () => {
  const { url, sql, ids } = await open(20);
  const pool = new Pool({ url, maxConnections: 4, statementTimeout: 10_000, prepare: false });
  onTestFinished(() => pool.close());
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes, false));
  await Promise.all(ids.map((keyId) => rename(store, keyId, "renamed")));
  const [row] = await sql`SELECT count(DISTINCT xmin::text)::int AS count FROM api_keys`;
  expect(row?.count).toBe(20);
});

const isBad = (bad: readonly number[], place: number) => bad.includes(place);

test("changes that raise fail alone, and all others are committed once", async () => {
  const { sql, store, ids } = await open(20);
  await sql.unsafe("ALTER TABLE api_keys ADD COLUMN renames int DEFAULT 0");
  await sql.unsafe(`
    CREATE FUNCTION count_renames() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.renames := OLD.renames + 1; RETURN NEW; END';
    CREATE TRIGGER counted BEFORE UPDATE OF name ON api_keys FOR EACH ROW EXECUTE FUNCTION count_renames()`);
  for (const [count, bad] of [
    [20, [7]],
    [20, [3, 7]],
    [20, [0, 1, 19]],
    [2, [0]],
    [2, [0, 1]],
  ] as const) {
    await sql`UPDATE api_keys SET renames = 0`;
    const calls = ids
      .slice(0, count)
      .map((keyId, place) => rename(store, keyId, isBad(bad, place) ? BAD_NAME : "renamed"));
    const outcomes = await Promise.allSettled(calls);
    const failed = [...outcomes.entries()].flatMap(([place, { status }]) => (status === "rejected" ? [place] : []));
    expect(failed).toEqual(bad);
    for (const place of bad) expect(outcomes[place]).toMatchObject({ reason: { name: "PostgresError" } });
    const rows = await sql`SELECT renames FROM api_keys ORDER BY key_id LIMIT ${count}`;
    expect(rows.map(({ renames }) => renames)).toEqual(calls.map((_, place) => (isBad(bad, place) ? 0 : 1)));
  }
});

test("a locked key delays its own changes only", async () => {
  const { sql, store, ids } = await open(10);
  const [first = "", ...others] = ids;
  const row = await lockRow(sql, first);
  let isDone = false;
  const locked = [rename(store, first, "first"), rename(store, first, "second")];
  void Promise.all(locked).then(() => {
    isDone = true;
  });
  await Promise.all(others.map((keyId) => rename(store, keyId, "renamed")));
  expect([isDone, await isAwaited(sql)]).toEqual([false, true]);
  await row.release();
  await Promise.all(locked);
});

test("changes that wait for locked keys alone keep no others waiting", async () => {
  const { sql, store, ids } = await open(4);
  const [last = "", ...locked] = ids;
  const waiting: Promise<unknown>[] = [];
  const rows = [];
  for (const keyId of locked.slice(0, 3)) {
    rows.push(await lockRow(sql, keyId));
    waiting.push(rename(store, keyId, "renamed"));
    await eventually(async () => (await countAwaited(sql)) === waiting.length);
  }
  expect(await rename(store, last, "renamed")).toMatchObject({ name: "renamed" });
  expect(await countAwaited(sql)).toBe(3);
  for (const row of rows) await row.release();
  await Promise.all(waiting);
});

test("a transaction that hangs keeps no others waiting for long", async () => {
  const { sql, store, ids } = await open(10);
  const release = await holdCommits(sql);
  const [last = "", ...others] = ids;
  const held = others.map((keyId) => rename(store, keyId, "renamed"));
  await eventually(() => isAwaited(sql));
  const enabling = store.change({ keyId: last, kind: null }, { verb: "enable" }, operator, new Date());
  expect(await enabling).toMatchObject({ keyId: last });
  expect(await isAwaited(sql)).toBe(true);
  await release();
  await Promise.all(held);
});

test("changes of one key are made in the order of their calls", async () => {
  const { store, ids, names } = await open(3);
  const calls = Array.from({ length: 30 }, (_, index) => rename(store, ids[index % 3] ?? "", `name ${index}`));
  expect((await Promise.all(calls)).map((key) => key?.name)).toEqual(calls.map((_, index) => `name ${index}`));
  expect(await names()).toEqual(["name 27", "name 28", "name 29"]);
});

test("a transaction locks keys in the order of their ids, as bulk changes do", async () => {
  const { sql, store, ids } = await open(10);
  await sql.unsafe(`
    CREATE TABLE locked (place serial, key_id uuid);
    GRANT ALL ON locked, locked_place_seq TO PUBLIC;
    CREATE FUNCTION record() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO locked (key_id) VALUES (NEW.key_id); RETURN NEW; END';
    CREATE TRIGGER recorded BEFORE UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION record()`);
  await Promise.all(ids.toReversed().map((keyId) => rename(store, keyId, "renamed")));
  const rows = await sql`SELECT key_id FROM locked ORDER BY place`;
  expect(rows.map(({ key_id }) => key_id)).toEqual(ids);
});

test("a change that takes rights away does not wait for other changes", async () => {
  const { url, sql, commit, ids, names } = await open(100);
  const pool = new Pool({ url, maxConnections: 2, statementTimeout: 10_000, prepare: true });
  onTestFinished(() => pool.close());
  const store = createKeyStore({ reads: pool, lists: pool }, commit, propagating(pool, noNodes));
  const release = await holdCommits(sql);
  const [first = "", ...others] = ids;
  const flood = others.map((keyId) => rename(store, keyId, "renamed"));
  await eventually(() => isAwaited(sql));
  expect(await revoke(store, first)).toMatchObject({ keyId: first });
  expect(await names()).not.toContain("renamed");
  await release();
  await Promise.all(flood);
});

test("a lost connection fails every change of its transaction", async () => {
  const { url, sql, ids, names } = await open(5);
  const proxy = await TcpProxy.start(url);
  const pool = new Pool({ url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  onTestFinished(async () => {
    await pool.close();
    await proxy.close();
  });
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes));
  await revoke(store, UNKNOWN_KEY_ID);
  const release = await holdCommits(sql);
  const outcomes = Promise.allSettled(ids.map((keyId) => rename(store, keyId, "renamed")));
  await eventually(() => isAwaited(sql));
  proxy.cut("rst");
  for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: "DATABASE_UNAVAILABLE" } });
  await release();
  await rename(store, ids[0] ?? "", "renamed again");
  expect((await names())[0]).toBe("renamed again");
});

test("a statement that the driver does not send fails its transaction, and no change receives the row of another", async () => {
  const { commit, store, ids } = await open(5);
  const unsendable: KeyStatement<unknown> = {
    keyId: UNKNOWN_KEY_ID,
    query: (sql) => sql`SELECT ${undefined as unknown as string}`,
    resultOf: (row) => row,
  };
  const calls = ids.map((keyId) => rename(store, keyId, "renamed"));
  const outcomes = await Promise.allSettled([commit(unsendable, {}), ...calls]);
  expect(outcomes.map((one) => one.status === "rejected" && one.reason.code)).toEqual(
    outcomes.map(() => "DATABASE_UNAVAILABLE"),
  );
  const renamed = await Promise.all(ids.map((keyId, place) => rename(store, keyId, `name ${place}`)));
  expect(renamed.map((key) => [key?.keyId, key?.name])).toEqual(ids.map((keyId, place) => [keyId, `name ${place}`]));
});

test("a node that joins during a transaction is waited for", async () => {
  const { url, sql, pool, ids } = await open(2);
  const [node] = await joined(url, "a");
  const joining = await newNode(url, "b");
  if (node === undefined) throw new Error("no node");
  const store = createKeyStore({ reads: pool, lists: pool }, propagating(pool, node.membership.propagation));
  const release = await holdCommits(sql);
  let isPropagated = false;
  const changes = Promise.all(ids.map((keyId) => rename(store, keyId, "renamed"))).then(() => {
    isPropagated = true;
  });
  await eventually(() => isAwaited(sql));
  await joining.membership.join();
  joining.proxy.freeze();
  await release();
  await eventually(async () => (await sql`SELECT FROM api_keys WHERE name = 'renamed'`).length === 2);
  await sql`SELECT pg_sleep(0.3)`;
  expect(isPropagated).toBe(false);
  joining.proxy.thaw();
  await changes;
  expect(joining.received).toEqual(ids.map((keyId) => ({ type: "key", keyId })));
});

test("a server that is paused within a transaction holds its locks for two seconds at most", async () => {
  const { url, sql, store, ids } = await open(2);
  const proxy = await TcpProxy.start(url);
  // The connection prepares the first statement, which takes a round trip within the transaction.
  const pool = new Pool({ url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  onTestFinished(async () => {
    await pool.close();
    await proxy.close();
  });
  await sql.unsafe(`
    CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NEW; END';
    CREATE TRIGGER lingering BEFORE UPDATE ON api_keys FOR EACH ROW WHEN (NEW.name = 'paused') EXECUTE FUNCTION linger()`);
  const paused = createKeyStore({ reads: pool, lists: pool }, propagating(pool, noNodes));
  const outcomes = Promise.allSettled(ids.map((keyId) => rename(paused, keyId, "paused")));
  await eventually(async () => (await sql`SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'`).length > 0);
  proxy.freeze("all");
  const start = performance.now();
  expect(await rename(store, ids[0] ?? "", "renamed")).toMatchObject({ name: "renamed" });
  expect(performance.now() - start).toBeLessThan(5_000);
  proxy.thaw();
  for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: { code: "DATABASE_UNAVAILABLE" } });
});
