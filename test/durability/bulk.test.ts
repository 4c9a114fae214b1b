import { randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { paceAt } from "../../src/keys/time-box.ts";
import { replayAuditLog } from "../support/audit-replay.ts";
import { derive, importKey, succeeded } from "../support/conformance.ts";
import { type Ended, eventually, runKeyhold, type Serving, serve, startKeyhold } from "../support/keyhold.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { linesOf } from "../support/log-lines.ts";
import { importMany, verdictsOf } from "../support/many-keys.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { type Answer, issue, type Json, paths, restClient } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** Bulk operations on two nodes of one database, whose processes and clients are killed. */
const KEYS = 3_000;
const seeded = seededBy("KEYHOLD_FAULT_SEED");

let database: TestDatabase;
let sql: Sql;
let nodes: Serving[];

const start = () =>
  serve({ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET, KEYHOLD_LEASE_TTL: "5s" });

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 2 });
  nodes = [await start(), await start()];
  // `holdRevocation` makes revocations wait.
  await sql.unsafe(`
    CREATE FUNCTION await_release() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(hashtextextended(NEW.key_id::text, 0)); RETURN NULL; END';
    CREATE TRIGGER await_release AFTER UPDATE OF revoke_time ON api_keys FOR EACH ROW EXECUTE FUNCTION await_release();`);
});

afterAll(async () => {
  for (const node of nodes) node.kill("SIGKILL");
  await Promise.all(nodes.map(({ ended }) => ended));
  await sql.end();
  await database.drop();
});

const node = (index: number): Serving => {
  const found = nodes[index];
  if (found === undefined) throw new Error("there is no such node");
  return found;
};
const rest = (index: number) => restClient(node(index));

async function newKeys(count = KEYS) {
  const actor = randomUUID();
  const rawKeys = await importMany(rest(0), count, { actor_id: actor });
  // Both nodes have cached every key.
  for (const index of [0, 1]) expect(await verdictsOf(rest(index), rawKeys)).toEqual({ valid: count });
  return { filter: `actor_id="${actor}"`, actor, rawKeys };
}

const revoke = (index: number, body: Json) => rest(index)("POST", `${paths.keys}:bulkRevoke`, body);

/** Repeats the call until the operation is done: one that waits for the end of a lease does not get far. */
async function completeOn(index: number, body: Json): Promise<Json> {
  for (;;) {
    const progress = succeeded(await revoke(index, body));
    if (progress.done) return progress;
  }
}

const changedCount = async (requestId: string): Promise<number> => {
  const [row] = await sql`SELECT changed_count FROM bulk_changes WHERE request_id = ${requestId}`;
  return row?.changed_count ?? 0;
};

const advanced = (requestId: string, count: number) => eventually(async () => (await changedCount(requestId)) >= count);

/** Neither node accepts a key, each key was changed once, and the audit log describes every key. */
async function expectRevokedOnce({ actor, rawKeys }: Awaited<ReturnType<typeof newKeys>>): Promise<void> {
  const { length } = rawKeys;
  for (const index of [0, 1])
    expect(await verdictsOf(rest(index), rawKeys)).toEqual({ VERIFICATION_ERROR_REVOKED: length });
  expect((await replayAuditLog(sql)).violations).toEqual([]);
  const [counts] = await sql`
    SELECT count(*)::int AS changes, count(DISTINCT key_id)::int AS keys FROM audit_events
    WHERE action = 'key.revoked' AND actor_id = ${actor}`;
  expect(counts).toEqual({ changes: length, keys: length });
}

test("an operation whose server is killed continues on the other node, and changes each key once", {
  timeout: 60_000,
}, async () => {
  const keys = await newKeys();
  const body = { filter: keys.filter, request_id: randomUUID(), expected_count: KEYS };
  const [held] = await sql`
    SELECT key_id FROM api_keys WHERE actor_id = ${keys.actor} ORDER BY key_id OFFSET ${seeded.pick([0, seeded.below(KEYS), KEYS - 1])} LIMIT 1`;
  const row = await lockRow(sql, held?.key_id);
  const interrupted = revoke(0, body).catch((error: unknown) => error);
  await eventually(() => isAwaited(sql));
  node(0).kill("SIGKILL");
  await node(0).ended;
  expect(await interrupted).toBeInstanceOf(Error);
  const left = KEYS - (await changedCount(body.request_id));
  expect(left).toBeGreaterThan(0);
  // The backend of the killed node may commit its slice now.
  await row.release();
  expect(await completeOn(1, body)).toEqual({
    matched_count: KEYS,
    changed_count: KEYS,
    done: true,
    request_id: body.request_id,
  });
  nodes[0] = await start();
  await expectRevokedOnce(keys);
});

/**
 * Makes the revocation of a key wait before its commit, and no other change, such as the recording of the last use. It continues after
 * `release`, and after the test.
 */
async function holdRevocation(keyId: string) {
  const holder = postgres(database.ownerUrl, { max: 1 });
  onTestFinished(() => holder.end());
  const [row] = await holder`SELECT pg_backend_pid() AS pid, pg_advisory_lock(hashtextextended(${keyId}, 0))`;
  return {
    isAwaited: async () => {
      const waiting = await sql`SELECT pid FROM pg_stat_activity WHERE ${row?.pid}::int = ANY (pg_blocking_pids(pid))`;
      return waiting.length > 0;
    },
    release: () => holder.end(),
  };
}

/** Returns what is stored of an operation and its keys. */
const stored = (requestId: string, actor: string) =>
  Promise.all([
    sql`SELECT * FROM bulk_changes WHERE request_id = ${requestId}`,
    sql`SELECT key_id, update_time, revoke_time, revocation_reason FROM api_keys WHERE actor_id = ${actor} ORDER BY key_id`,
  ]);

test("an operation whose server is killed between the last commit and the response returns the same result, and changes nothing again", {
  timeout: 60_000,
}, async () => {
  // The second slice is the last, and not full, so that the commit that changes its keys ends the operation.
  const count = paceAt(0).slice + 3;
  const keys = await newKeys(count);
  const body = { filter: keys.filter, request_id: randomUUID(), expected_count: count };
  const proxy = await TcpProxy.start(node(0).url);
  onTestFinished(() => proxy.close());
  proxy.freeze();
  const [last] = await sql`
    SELECT key_id FROM api_keys WHERE actor_id = ${keys.actor} ORDER BY key_id DESC LIMIT 1`;
  const held = await holdRevocation(last?.key_id);
  const interrupted = restClient({ url: new URL(proxy.url).origin })("POST", `${paths.keys}:bulkRevoke`, body).catch(
    (error: unknown) => error,
  );
  await eventually(held.isAwaited);
  // Before it responds, node 0 waits for the acknowledgement of node 1.
  node(1).kill("SIGSTOP");
  onTestFinished(() => node(1).kill("SIGCONT"));
  await held.release();
  await advanced(body.request_id, count);
  node(0).kill("SIGKILL");
  await node(0).ended;
  await proxy.close();
  expect(await interrupted).toBeInstanceOf(Error);
  const before = await stored(body.request_id, keys.actor);
  expect(before[0]).toMatchObject([{ done: true, changed_count: count }]);

  // Node 1 has the keys in its cache, and receives this call with the notifications of the changes.
  const repeated = completeOn(1, body);
  node(1).kill("SIGCONT");
  const result = { matched_count: count, changed_count: count, done: true, request_id: body.request_id };
  expect(await repeated).toEqual(result);
  expect(await verdictsOf(rest(1), keys.rawKeys)).toEqual({ VERIFICATION_ERROR_REVOKED: count });
  nodes[0] = await start();
  expect(await completeOn(0, body)).toEqual(result);
  await expectRevokedOnce(keys);
  expect(await stored(body.request_id, keys.actor)).toEqual(before);

  // Neither node has logged a change of these keys for the repeated calls.
  const keyIds = new Set(before[1].map(({ key_id }) => key_id));
  const restarted = [0, 1].map(async (index) => {
    node(index).kill("SIGTERM");
    const { stdout } = await node(index).ended;
    const calls = linesOf(stdout).filter(({ rpc }) => /BulkRevoke/.test(rpc));
    expect(calls).not.toEqual([]);
    expect(calls.flatMap(({ key_ids = [] }) => key_ids).filter((keyId: string) => keyIds.has(keyId))).toEqual([]);
    nodes[index] = await start();
  });
  await Promise.all(restarted);
});

test("a call ends soon after its client has disconnected, or its server was stopped, and another continues without new keys", {
  timeout: 60_000,
}, async () => {
  const keys = await newKeys();
  const body = { filter: keys.filter, request_id: randomUUID() };
  const sent = httpRequest(`${node(0).url}${paths.keys}:bulkRevoke`, {
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  sent.on("error", () => {}).end(JSON.stringify(body));
  await advanced(body.request_id, 100);
  sent.destroy();
  const stopped = await restingCount(body.request_id);
  expect(stopped).toBeLessThan(KEYS);
  const created = await importMany(rest(0), 2, { actor_id: keys.actor });
  const answer = revoke(0, body);
  await advanced(body.request_id, stopped + 1);
  node(0).kill("SIGTERM");
  const { status, body: progress } = await answer;
  expect([status, progress.done]).toEqual([200, false]);
  await node(0).ended;
  expect(await changedCount(body.request_id)).toBe(progress.changed_count);
  const { body: done } = await revoke(1, body);
  expect(done).toMatchObject({ changed_count: KEYS, done: true });
  nodes[0] = await start();
  expect(await verdictsOf(rest(1), created)).toEqual({ valid: created.length });
  await expectRevokedOnce(keys);
});

/** Returns the number of changed keys when it has not increased for a while. */
async function restingCount(requestId: string): Promise<number> {
  for (let last = -1; ; ) {
    const now = await changedCount(requestId);
    if (now === last) return now;
    last = now;
    await sleep(300);
  }
}

/** Returns the number of nodes that may answer from their caches. */
async function countLeases(): Promise<number> {
  const [row] = await sql`
    SELECT count(*)::int AS count FROM nodes WHERE renew_time + ttl_ms * interval '1 millisecond' > clock_timestamp()`;
  return row?.count;
}

/** A key with its tokens, all in the caches of both nodes. */
async function newFamily(actor: string) {
  const { rawKey, keyId } = await importKey(rest(0), { actor_id: actor });
  const { token: jwt } = await derive(rest(0), rawKey);
  const { token: macaroon } = await derive(rest(0), rawKey, { algorithm: "TOKEN_ALGORITHM_MACAROON" });
  const credentials = [rawKey, jwt, macaroon];
  for (const index of [0, 1]) expect(await verdictsOf(rest(index), credentials)).toEqual({ valid: 3 });
  return { keyId, credentials };
}

test("no node accepts a key when bulkDisable, or a revocation with descendants, has returned", {
  timeout: 60_000,
}, async () => {
  const actor = randomUUID();
  const root = await issue(rest(0), { scopes: ["keyhold:admin"] });
  const disable = () => rest(0)("POST", `${paths.keys}:bulkDisable`, { filter: `actor_id="${actor}"` });
  const revokeAll = () => rest(0)("POST", `${paths.keys}/${root.keyId}:revoke`, { include_descendants: true });
  const newChild = async () => {
    const child = await newFamily("child");
    await sql`UPDATE api_keys SET created_by = ${`admin-token:${root.keyId}`} WHERE key_id = ${child.keyId}`;
    return child;
  };
  const expectRefused = async (index: number, family: Awaited<ReturnType<typeof newFamily>>, reason: string) =>
    expect(await verdictsOf(rest(index), family.credentials)).toEqual({ [`VERIFICATION_ERROR_${reason}`]: 3 });

  let [member, child] = [await newFamily(actor), await newChild()];
  expect(succeeded(await disable())).toMatchObject({ changed_count: 1, done: true });
  await expectRefused(1, member, "DISABLED");
  expect(succeeded(await revokeAll())).toMatchObject({ descendant_count: 1 });
  await expectRefused(1, child, "REVOKED");

  // A node that receives no notification answers from its cache until its lease ends.
  [member, child] = [await newFamily(actor), await newChild()];
  const leasesAfter = async (call: Promise<Answer>) => {
    succeeded(await call);
    return countLeases();
  };
  const lock = await lockRow(sql, child.keyId);
  const revocation = leasesAfter(revokeAll());
  await eventually(() => isAwaited(sql));
  node(1).kill("SIGSTOP");
  onTestFinished(() => node(1).kill("SIGCONT"));
  await lock.release();
  expect(Math.max(...(await Promise.all([revocation, leasesAfter(disable())])))).toBeLessThan(2);
  node(1).kill("SIGCONT");
  // Until it has a lease again, it may have no verdict, but accepts no key.
  await eventually(async () => {
    const { status, body } = await rest(1)("POST", `${paths.keys}:verify`, { credential: child.credentials[0] });
    expect(body.is_valid).not.toBe(true);
    return status === 200;
  });
  for (const index of [0, 1]) {
    await expectRefused(index, member, "DISABLED");
    await expectRefused(index, child, "REVOKED");
  }
});

test("the command shows its progress, continues after SIGKILL and SIGINT, and needs --yes without a terminal", {
  timeout: 60_000,
}, async () => {
  const keys = await newKeys();
  const requestId = randomUUID();
  const environment = { KEYHOLD_URL: node(0).url };
  const args = ["keys", "bulk-revoke", "--filter", keys.filter, "--reason", "superseded"];
  const unconfirmed = await runKeyhold(args, environment, { input: "y\n" });
  expect([unconfirmed.code, unconfirmed.stderr]).toEqual([2, expect.stringContaining("--yes")]);
  const counted = await runKeyhold([...args, "--validate-only", "--json"], environment);
  expect(JSON.parse(counted.stdout)).toMatchObject({ matched_count: KEYS, changed_count: 0 });
  const differs = await runKeyhold([...args, "--yes", "--expected-count", "7"], environment);
  expect([differs.code, differs.stderr]).toEqual([5, expect.stringContaining(`matching keys: ${KEYS}, expected: 7`)]);
  const complete = [...args, "--yes", "--request-id", requestId];
  const interrupt = async (signal: NodeJS.Signals, after: number): Promise<Ended> => {
    const running = startKeyhold(complete, environment);
    await advanced(requestId, after);
    running.kill(signal);
    return running.ended;
  };
  await interrupt("SIGKILL", 100);
  const before = await restingCount(requestId);
  const interrupted = await interrupt("SIGINT", before + 1);
  expect([interrupted.code, interrupted.stderr]).toEqual([130, expect.stringContaining(`--request-id ${requestId}`)]);
  expect(await restingCount(requestId)).toBeLessThan(KEYS);
  const done = await runKeyhold([...complete, "--json"], environment);
  expect([done.code, JSON.parse(done.stdout)]).toEqual([
    0,
    { matched_count: KEYS, changed_count: KEYS, done: true, request_id: requestId },
  ]);
  await expectRevokedOnce(keys);
});
