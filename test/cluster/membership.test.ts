import { setTimeout as sleep } from "node:timers/promises";
import postgres, { type Sql } from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import { createRenewLease } from "../../src/postgres/cluster/leases.ts";
import { lsn, positionColumns } from "../../src/postgres/connection/server-position.ts";
import { openSchema } from "../postgres/new-keys.ts";
import { eventually } from "../support/keyhold.ts";
import { joined, newNode, type TestNode, TTL } from "./nodes.ts";

/** With a pause of a third of the lease after each, they would come too late. */
const SLOW_RENEWAL = TTL / 3;

async function database(): Promise<{ url: string; sql: Sql }> {
  const { url, ownerUrl } = await openSchema();
  // A server may not truncate a table, but must be notified when the owner does.
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

/** Whether it is still pending after a tick of the event loop and a response of the database. */
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
  test("is acquired by joining, renewed, and released by leaving", async () => {
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

  test("ends early when the database does not answer, and a new one is acquired when it does again", async () => {
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

  test("that was revoked is not renewed: the cache is cleared and a new one is acquired", async () => {
    const { url, sql } = await database();
    const [node] = (await joined(url, "a")) as [TestNode];
    const [before] = await sql`DELETE FROM nodes RETURNING lease_id`;
    await eventually(async () => (await leases(sql)).length === 1);
    await eventually(async () => node.membership.lease.isFresh);
    const [after] = await sql`SELECT lease_id FROM nodes`;
    expect(after?.lease_id).not.toBe(before?.lease_id);
    expect(node.forgets()).toBe(2);
  });

  test("ends with the notification connection, without effect if the next one exists at once", async () => {
    const { url, sql } = await database();
    const [a, b] = (await joined(url, "a", "b")) as [TestNode, TestNode];
    await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'keyhold feed'`;
    await eventually(async () => a.log.length > 0 && b.log.length > 0);
    await eventually(async () => a.membership.lease.isFresh && b.membership.lease.isFresh);
    expect(await leases(sql)).toEqual(["a", "b"]);
    expect(a.forgets()).toBe(2);
    await a.awaitPropagation();
  });

  test("that is not renewed in time, because the database is silent, is refused to those who wait for it", async () => {
    const { url, sql } = await database();
    const answered = Promise.withResolvers<void>();
    const renewLease = createRenewLease(url);
    let silence = Promise.resolve();
    const node = await newNode(url, "a", {
      renew: async (...renewal) => {
        await silence;
        return renewLease(...renewal);
      },
    });
    await node.membership.join();
    silence = answered.promise;
    const renewed = node.membership.renewed();
    renewed.catch(() => undefined);
    await eventually(async () => node.membership.unavailableReason !== null);
    expect(await isOpen(sql, renewed)).toBe(false);
    await expect(renewed).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE" });
    answered.resolve();
    await eventually(async () => node.membership.unavailableReason === null);
  });

  test("outlasts renewals that take a third of it, as over a slow network", async () => {
    const { url } = await database();
    const renewLease = createRenewLease(url);
    const answered: boolean[] = [];
    const node = await newNode(url, "a", {
      renew: async (...renewal) => {
        const answer = await renewLease(...renewal);
        await sleep(SLOW_RENEWAL);
        answered.push(node.membership.lease.isFresh);
        return answer;
      },
    });
    await node.membership.join();
    await eventually(async () => answered.length > 6);
    // The first one acquires the lease. A busy machine may delay one of the others.
    expect(answered.slice(1, 7).filter((isFresh) => !isFresh).length).toBeLessThanOrEqual(1);
  });

  test("of another server: its cache goes, even within a grace, which outlasts a lost session", async () => {
    const { url } = await database();
    const node = await newNode(url, "a", { staleGrace: 60_000 });
    await node.membership.join();
    const forgets = node.forgets();
    node.proxy.freeze();
    node.proxy.cut("rst");
    await eventually(async () =>
      node.log.some((line) => line.startsWith("the connection to the change feed was lost")),
    );
    expect(node.forgets()).toBe(forgets);
    node.proxy.thaw();
    await eventually(async () => node.membership.lease.isFresh);
    const before = node.forgets();
    expect(() => node.membership.requireServer("1/00000001/1", node.membership.server)).toThrow("is unreachable");
    expect(node.forgets()).toBe(before + 1);
  });

  test("is refused to a node that is notified by another database than the one with the keys", async () => {
    const [{ url }, other] = [await database(), await database()];
    const node = await newNode(url, "a", { listenUrl: other.url });
    await expect(node.membership.join()).rejects.toThrow("point to different databases");
    expect(node.membership.lease.isFresh).toBe(false);
  });
});

test("a position of the database ends with what is flushed, not with what is written or inserted", async () => {
  const { sql } = await database();
  // More than fits into the buffers of the log, so that a part is written before the commit.
  const message = sql`length(pg_logical_emit_message(false, 'keyhold', repeat('x', 8000000))::text)`;
  const isBehind = async () => {
    const [row] = await sql`
      SELECT ${message}, ${lsn(sql, sql`pg_current_wal_lsn()`)} AS written, ${positionColumns(sql)}`;
    return BigInt(row?.lsn) < BigInt(row?.written);
  };
  // The database may flush between the two.
  let attempts = 20;
  while (attempts > 0 && !(await isBehind())) attempts--;
  expect(attempts).toBeGreaterThan(0);
});

test("a node that is closed while it reconnects also closes that connection", async () => {
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

describe("a node is notified", () => {
  test("of every change by any program, and of nothing else", async () => {
    const { url, sql } = await database();
    const [{ received, membership }] = (await joined(url, "a")) as [TestNode];
    const [key] = await insertKey(sql);
    await sql`UPDATE api_keys SET last_used_time = now()`;
    await sql`UPDATE api_keys SET name = 'another'`;
    await sql`DELETE FROM api_keys`;
    await sql`INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time) VALUES ('k', '{}', '', 'w', now())`;
    await sql`TRUNCATE api_keys`;
    await eventually(async () => received.some(({ type }) => type === "everything"));
    expect(received).toEqual([
      { type: "digests", digests: [key?.digest] },
      { type: "key", keyId: key?.key_id },
      { type: "key", keyId: key?.key_id },
      { type: "signing_keys" },
      { type: "everything" },
    ]);
    expect(membership.lease.isFresh).toBe(true);
  });

  test("of the digests of a large import in messages within the database's limit", async () => {
    const { url, sql } = await database();
    const [{ received }] = (await joined(url, "a")) as [TestNode];
    await sql`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
      SELECT gen_random_uuid(), CASE WHEN n <= 1000 THEN 'imported' ELSE 'issued' END, 'n', 'a', '{}', '{}', 'h', now(), now(),
        sha256(n::text::bytea), 'k' FROM generate_series(1, 1500) AS n`;
    await sql`TRUNCATE api_keys`;
    await eventually(async () => received.some(({ type }) => type === "everything"));
    const digests = received.flatMap((change) => (change.type === "digests" ? change.digests : []));
    expect(new Set(digests.map((digest) => Buffer.from(digest).toString("hex"))).size).toBe(1000);
    expect(received).toHaveLength(11);
  });

  test("of an unknown event of a later version, which clears the cache", async () => {
    const { url, sql } = await database();
    const [{ received }] = (await joined(url, "a")) as [TestNode];
    await sql`SELECT pg_notify('keyhold_changes', 'something new')`;
    await eventually(async () => received.length > 0);
    expect(received).toEqual([{ type: "everything" }]);
  });
});

describe("awaiting propagation", () => {
  test("sends a barrier only if there are other nodes", async () => {
    const { url, sql } = await database();
    const [node] = await joined(url, "a");
    const barriers: string[] = [];
    await sql.listen("keyhold_changes", (payload) => {
      if (payload.startsWith("barrier ")) barriers.push(payload);
    });
    await node?.awaitPropagation();
    await joined(url, "b");
    await node?.awaitPropagation();
    await eventually(async () => barriers.length > 0);
    expect(barriers).toEqual([expect.stringMatching(/^barrier \S+ 2$/)]);
  });

  test("returns at once without other nodes", async () => {
    const { url } = await database();
    const [node] = (await joined(url, "a")) as [TestNode];
    await node.awaitPropagation();
  });

  test("ends when every other node has received all earlier changes", async () => {
    const { url, sql } = await database();
    const [a, ...others] = (await joined(url, "a", "b", "c")) as [TestNode, TestNode, TestNode];
    for (let round = 0; round < 50; round++) {
      const [key] = await insertKey(sql);
      await sql`DELETE FROM api_keys`;
      await a.awaitPropagation();
      for (const { received } of others) expect(received.at(-1)).toEqual({ type: "key", keyId: key?.key_id });
    }
  });

  test("waits for an unresponsive node until its lease ends, and then no longer", async () => {
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

  test("retries in the next session when its own is lost, and works without a lease", async () => {
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
