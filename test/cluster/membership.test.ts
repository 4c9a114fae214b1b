import postgres, { type Sql } from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { openSchema } from "../postgres/new-keys.ts";
import { eventually } from "../support/keyhold.ts";
import { TcpProxy, withoutNotifications } from "../support/tcp-proxy.ts";
import { joined, newNode, type TestNode, TTL } from "./nodes.ts";

async function database(): Promise<{ url: string; sql: Sql }> {
  const { url, ownerUrl } = await openSchema();
  // A server may not truncate a table, and must hear of it when somebody else does.
  const sql = postgres(ownerUrl, { max: 2, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return { url, sql };
}

async function leases(sql: Sql): Promise<string[]> {
  return (await sql`SELECT name FROM nodes ORDER BY name`).map(({ name }) => name);
}

/** Milliseconds. */
async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Whether it is still open after a turn of the event loop and an answer of the database. */
async function isOpen(sql: Sql, promise: Promise<unknown>): Promise<boolean> {
  let open = true;
  const awaitPropagation = () => {
    open = false;
  };
  promise.then(awaitPropagation, awaitPropagation);
  for (let i = 0; i < 5; i++) await sql`SELECT 1`;
  return open;
}

const insertKey = (sql: Sql) => sql`
  INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
  VALUES (gen_random_uuid(), 'imported', 'n', 'a', '{}', '{}', 'h', now(), now(), sha256(gen_random_uuid()::text::bytea), 'k')
  RETURNING key_id, digest`;

describe("a lease", () => {
  test("is taken by joining, renewed, and given up by leaving", async () => {
    const { url, sql } = await database();
    const node = await newNode(url, "a");
    expect(node.membership.lease.isFresh).toBe(false);
    await node.membership.join();
    expect([node.membership.lease.isFresh, await leases(sql)]).toEqual([true, ["a"]]);
    await eventually(async () => (await sql`SELECT renewals FROM nodes`)[0]?.renewals >= 2);
    expect(node.membership.lease.isFresh).toBe(true);
    await node.membership.leave();
    expect([node.membership.lease.isFresh, await leases(sql)]).toEqual([false, []]);
  });

  test("is over before its time when the database has not answered, and another is taken when it does again", async () => {
    const { url, sql } = await database();
    const [node] = (await joined(url, "a")) as [TestNode];
    node.proxy.freeze();
    const over = await timeOf(() => eventually(async () => !node.membership.lease.isFresh));
    expect(over).toBeLessThan(5 * TTL);
    await eventually(async () => node.membership.unavailableReason !== null);
    const before = node.forgets();
    node.proxy.thaw();
    const back = await timeOf(() => eventually(async () => node.membership.lease.isFresh));
    expect(back).toBeLessThan(5 * TTL);
    expect(node.membership.unavailableReason).toBe(null);
    expect(node.forgets()).toBeGreaterThan(before);
    expect(await leases(sql)).toEqual(["a"]);
  });

  test("that was taken away is not renewed: all is forgotten and another is taken", async () => {
    const { url, sql } = await database();
    const [node] = (await joined(url, "a")) as [TestNode];
    const [before] = await sql`DELETE FROM nodes RETURNING lease_id`;
    await eventually(async () => (await leases(sql)).length === 1);
    await eventually(async () => node.membership.lease.isFresh);
    const [after] = await sql`SELECT lease_id FROM nodes`;
    expect(after?.lease_id).not.toBe(before?.lease_id);
    expect(node.forgets()).toBe(3);
  });

  test("goes with the connection for news, and is not missed while the next one is there at once", async () => {
    const { url, sql } = await database();
    const [a, b] = (await joined(url, "a", "b")) as [TestNode, TestNode];
    await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'keyhold feed'`;
    await eventually(async () => a.log.length > 0 && b.log.length > 0);
    await eventually(async () => a.membership.lease.isFresh && b.membership.lease.isFresh);
    expect(await leases(sql)).toEqual(["a", "b"]);
    expect(a.forgets()).toBe(3);
    await a.awaitPropagation();
  });

  test("is refused to a node that hears from another database than the one with the keys", async () => {
    const [{ url }, other] = [await database(), await database()];
    const node = await newNode(url, "a", { listenUrl: other.url });
    await expect(node.membership.join()).rejects.toThrow("leads to another database");
    expect(node.membership.lease.isFresh).toBe(false);
  });
});

test("a node that is closed while it connects again ends that connection too", async () => {
  const { url } = await database();
  const [node] = (await joined(url, "a")) as [TestNode];
  node.proxy.freeze();
  node.proxy.cut("rst");
  await eventually(async () => node.log.length > 0 && node.proxy.connections() > 0);
  const closing = node.membership.close();
  node.proxy.thaw();
  await closing;
  await eventually(async () => node.proxy.connections() === 0);
});

test("a node to which no notification comes does not join, and says what to do", async () => {
  const { url } = await database();
  const proxy = await TcpProxy.start(url, { filter: withoutNotifications });
  onTestFinished(() => void proxy.close());
  const node = await newNode(url, "a", { listenUrl: proxy.url });
  await expect(node.membership.join()).rejects.toThrow("KEYHOLD_DATABASE_LISTEN_URL must lead to the database itself");
  expect(node.membership.lease.isFresh).toBe(false);
});

describe("a node hears", () => {
  test("of every change, by whatever program it was made, and of nothing that is none", async () => {
    const { url, sql } = await database();
    const [{ heard, membership }] = (await joined(url, "a")) as [TestNode];
    const [key] = await insertKey(sql);
    await sql`UPDATE api_keys SET last_used_time = now()`;
    await sql`UPDATE api_keys SET name = 'another'`;
    await sql`DELETE FROM api_keys`;
    await sql`INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time) VALUES ('k', '{}', '', 'w', now())`;
    await sql`TRUNCATE api_keys`;
    await eventually(async () => heard.some(({ type }) => type === "everything"));
    expect(heard).toEqual([
      { type: "digests", digests: [key?.digest] },
      { type: "key", keyId: key?.key_id },
      { type: "key", keyId: key?.key_id },
      { type: "signing_keys" },
      { type: "everything" },
    ]);
    expect(membership.lease.isFresh).toBe(true);
  });

  test("of the digests of a large import in messages that the database can carry", async () => {
    const { url, sql } = await database();
    const [{ heard }] = (await joined(url, "a")) as [TestNode];
    await sql`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
      SELECT gen_random_uuid(), CASE WHEN n <= 1000 THEN 'imported' ELSE 'issued' END, 'n', 'a', '{}', '{}', 'h', now(), now(),
        sha256(n::text::bytea), 'k' FROM generate_series(1, 1500) AS n`;
    await sql`TRUNCATE api_keys`;
    await eventually(async () => heard.some(({ type }) => type === "everything"));
    const digests = heard.flatMap((change) => (change.type === "digests" ? change.digests : []));
    expect(new Set(digests.map((digest) => Buffer.from(digest).toString("hex"))).size).toBe(1000);
    expect(heard).toHaveLength(11);
  });

  test("of what a later version says as that anything may have changed", async () => {
    const { url, sql } = await database();
    const [{ heard }] = (await joined(url, "a")) as [TestNode];
    await sql`SELECT pg_notify('keyhold_changes', 'something new')`;
    await eventually(async () => heard.length > 0);
    expect(heard).toEqual([{ type: "everything" }]);
  });
});

describe("settling", () => {
  test("waits for nobody when there is nobody else", async () => {
    const { url } = await database();
    const [node] = (await joined(url, "a")) as [TestNode];
    await node.awaitPropagation();
  });

  test("is over when every other node has heard what was committed before", async () => {
    const { url, sql } = await database();
    const [a, ...others] = (await joined(url, "a", "b", "c")) as [TestNode, TestNode, TestNode];
    for (let round = 0; round < 50; round++) {
      const [key] = await insertKey(sql);
      await sql`DELETE FROM api_keys`;
      await a.awaitPropagation();
      for (const { heard } of others) expect(heard.at(-1)).toEqual({ type: "key", keyId: key?.key_id });
    }
  });

  test("waits for a node that does not answer until its lease is over, and for that node no more", async () => {
    const { url, sql } = await database();
    const [a, b] = (await joined(url, "a", "b")) as [TestNode, TestNode];
    b.proxy.freeze();
    const settling = a.awaitPropagation();
    expect(await isOpen(sql, settling)).toBe(true);
    expect(await timeOf(() => settling)).toBeLessThan(5 * TTL);
    expect([b.membership.lease.isFresh, await leases(sql)]).toEqual([false, ["a"]]);
    await a.awaitPropagation();
    b.proxy.thaw();
    await eventually(async () => b.membership.lease.isFresh);
    expect(await leases(sql)).toEqual(["a", "b"]);
  });

  test("does not wait for a node that leaves meanwhile", async () => {
    const { url } = await database();
    const [a] = (await joined(url, "a")) as [TestNode];
    const b = await newNode(url, "b", { ttl: 60_000 });
    await b.membership.join();
    b.proxy.freeze();
    const settling = a.awaitPropagation();
    b.proxy.cut("rst");
    b.proxy.thaw();
    expect(await timeOf(() => settling)).toBeLessThan(10_000);
    await eventually(async () => b.membership.lease.isFresh);
  });

  test("asks again in the next session when its own is lost, and those who have no lease may ask", async () => {
    const { url } = await database();
    const [, b] = (await joined(url, "a", "b")) as [TestNode, TestNode];
    const visitor = await newNode(url, "c");
    await visitor.awaitPropagation();
    b.proxy.freeze();
    const settling = visitor.awaitPropagation();
    visitor.proxy.cut("fin");
    b.proxy.thaw();
    await settling;
    expect(visitor.membership.lease.isFresh).toBe(false);
  });
});
