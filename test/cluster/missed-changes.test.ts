import { randomUUID } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { describe, expect, onTestFinished, test } from "vitest";
import type { LogPosition, MissedChanges, ReadMissed } from "../../src/cluster/change-feed.ts";
import { DatabaseRejectedError } from "../../src/cluster/history.ts";
import { createReadMissed } from "../../src/postgres/audit/missed-changes.ts";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import { createRenewLease } from "../../src/postgres/cluster/leases.ts";
import { withPrimary } from "../../src/postgres/connection/primary.ts";
import { serverId } from "../../src/postgres/connection/server-position.ts";
import { openSchema } from "../postgres/new-keys.ts";
import { eventually } from "../support/keyhold.ts";
import { newNode, TTL } from "./nodes.ts";

const NOTHING: MissedChanges = { keyIds: [], digests: [], actorIds: [] };

async function database(): Promise<{ url: string; sql: Sql }> {
  const { url, ownerUrl } = await openSchema();
  const sql = postgres(ownerUrl, { max: 2, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return { url, sql };
}

/** Numbers all events, and returns the end of the log. */
async function positionOf(sql: Sql): Promise<LogPosition> {
  await sql`SELECT audit_sequence(1000)`;
  const [end] = await sql<LogPosition[]>`SELECT size::int, salt FROM audit_log JOIN audit_events ON seq = size - 1`;
  return end ?? { size: 0, salt: "" };
}

const insertKey = async (sql: Sql) => {
  const [key] = await sql<{ key_id: string; digest: Uint8Array }[]>`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    VALUES (gen_random_uuid(), 'imported', 'n', 'a', '{}', '{}', 'h', now(), now(), sha256(gen_random_uuid()::text::bytea), 'k')
    RETURNING key_id, digest`;
  return key ?? { key_id: "", digest: new Uint8Array() };
};

const insertEvents = (sql: Sql, count: number, action = "key.updated", keyId: string | null = randomUUID()) => sql`
  INSERT INTO audit_pending (action, key_id, call) SELECT ${action}, ${keyId}, '{"caller": "a"}' FROM generate_series(1, ${count}::int)`;

/** Deletes all events but a new one, like `audit_prune` when the tree of the log has them. */
async function prune(sql: Sql): Promise<void> {
  await insertEvents(sql, 1);
  await positionOf(sql);
  await sql`DELETE FROM audit_events WHERE seq < (SELECT size - 1 FROM audit_log)`;
}

test("a node whose feed was cut evicts what has changed meanwhile, and keeps the rest", async () => {
  const { url, sql } = await database();
  const [updated, deleted] = [await insertKey(sql), await insertKey(sql)];
  await positionOf(sql);
  const node = await newNode(url, "a");
  await node.membership.join();
  const forgets = node.forgets();
  await node.proxy.down();
  await eventually(async () => node.membership.session === null);
  await sql`UPDATE api_keys SET name = 'another' WHERE key_id = ${updated.key_id}`;
  await sql`DELETE FROM api_keys WHERE key_id = ${deleted.key_id}`;
  const imported = await insertKey(sql);
  await node.proxy.up();
  await eventually(async () => node.membership.lease.isFresh);
  const keyIds = [updated.key_id, deleted.key_id, imported.key_id];
  expect(node.missed).toEqual([{ ...NOTHING, keyIds, digests: [imported.digest] }]);
  expect(node.forgets()).toBe(forgets);
});

test("a node whose feed was cut evicts the keys of actors whose limits have changed meanwhile", async () => {
  const { url, sql } = await database();
  await positionOf(sql);
  const node = await newNode(url, "a");
  await node.membership.join();
  const forgets = node.forgets();
  await node.proxy.down();
  await eventually(async () => node.membership.session === null);
  await sql`INSERT INTO actors VALUES ('one', '[]', now(), now()), ('two', NULL, now(), now())`;
  await sql`UPDATE actors SET rate_limits = NULL WHERE actor_id = 'one'`;
  await sql`DELETE FROM actors WHERE actor_id = 'two'`;
  await node.proxy.up();
  await eventually(async () => node.membership.lease.isFresh);
  expect(node.missed).toEqual([{ ...NOTHING, actorIds: ["one", "two"] }]);
  expect(node.forgets()).toBe(forgets);
});

test("every column whose change is notified is compared for an event", async () => {
  const { sql } = await database();
  const rows = await sql<{ name: string; source: string }[]>`
    SELECT event_object_column AS name, prosrc AS source
    FROM information_schema.triggered_update_columns JOIN pg_proc ON pg_proc.oid = 'audit_keys_updated'::regproc
    WHERE trigger_schema = current_schema() AND trigger_name = 'key_changed'`;
  // A changed key_id has a trigger of its own.
  const notified = rows.filter(({ name }) => name !== "key_id");
  const missing = notified.filter(({ name, source }) => {
    const compared = source.slice(source.lastIndexOf("LATERAL"));
    return !new RegExp(`becomes\\.${name}\\b`).test(compared);
  });
  expect(missing.map(({ name }) => name)).toEqual([]);
  expect(notified.length).toBeGreaterThan(25);
});

describe("the audit log", () => {
  async function open() {
    const { url, sql } = await database();
    const server = await withPrimary({ url, statementTimeout: TTL, prepare: false }, async (one) => {
      const [row] = await one<{ server: string }[]>`SELECT ${serverId(one)} AS server`;
      return row?.server ?? "";
    });
    return { sql, server, since: await positionOf(sql), read: createReadMissed(url) };
  }

  test("tells that nothing has changed, and numbers all events first", async () => {
    const { sql, server, since, read } = await open();
    expect(await read(since, server)).toEqual(NOTHING);
    const keyId = randomUUID();
    await insertEvents(sql, 2_001, "key.updated", keyId);
    expect(await read(since, server)).toEqual({ ...NOTHING, keyIds: [keyId] });
  });

  test.for([
    "signing_key.rotated",
    "hmac_key.created",
    "root_secret.created",
    "audit_tree_key.rewrapped",
    "call.denied",
    "limit.exceeded",
  ])("has nothing to evict for %s", async (action) => {
    const { sql, server, since, read } = await open();
    await insertEvents(sql, 1, action, null);
    expect(await read(since, server)).toEqual(NOTHING);
  });

  test("tells the digests of a key that was adopted", async () => {
    const { sql, server, read } = await open();
    const { key_id, digest } = await insertKey(sql);
    const since = await positionOf(sql);
    await insertEvents(sql, 1, "key.adopted", key_id);
    expect(await read(since, server)).toEqual({ ...NOTHING, keyIds: [key_id], digests: [digest] });
  });

  test.for<[string, (sql: Sql) => PromiseLike<unknown>]>([
    ["that was pruned", prune],
    ["of a restored database", (sql) => sql`UPDATE audit_events SET salt = gen_random_uuid()`],
    ["that ends before the position", (sql) => sql`DELETE FROM audit_events`],
    ["of keys that were truncated", (sql) => sql`TRUNCATE api_keys`],
    ["of actors that were truncated", (sql) => sql`TRUNCATE actors`],
    ["of a migration", (sql) => insertEvents(sql, 1, "migration.created", null)],
    ["with an action of a later release", (sql) => insertEvents(sql, 1, "something.new", null)],
    ["with more than 20,000 events", (sql) => insertEvents(sql, 20_001)],
  ])("%s tells nothing", async ([, change]) => {
    const { sql, server, since, read } = await open();
    await change(sql);
    expect(await read(since, server)).toBeNull();
  });

  test("of another server tells nothing", async () => {
    const { since, read } = await open();
    expect(await read(since, "1/00000001/1")).toBeNull();
  });
});

describe("the cache is dropped", () => {
  test.for<[string, ReadMissed]>([
    ["tells nothing", async () => null],
    ["cannot be read", () => Promise.reject(new Error("no"))],
    ["does not answer", () => new Promise(() => undefined)],
  ])("if the log %s, and the node joins", async ([, readMissed]) => {
    const { url, sql } = await database();
    await positionOf(sql);
    const node = await newNode(url, "a", { readMissed });
    await node.membership.join();
    const forgets = node.forgets();
    node.proxy.cut("rst");
    await eventually(async () => node.forgets() > forgets && node.membership.lease.isFresh);
    expect(node.missed).toEqual([]);
  });

  test("if the node comes back to another server, which may lack what it has read", async () => {
    const { url, sql } = await database();
    await positionOf(sql);
    let server = "1/00000001/1";
    let reads = 0;
    const node = await newNode(url, "a", {
      open: async (...args) => {
        const session = await createOpenFeed(node.proxy.url)(...args);
        return Object.assign(session, { position: { ...session.position, server } });
      },
      renew: async (...renewal) => {
        const answer = await createRenewLease(url)(...renewal);
        return { ...answer, position: { ...answer.position, server } };
      },
      readMissed: async () => {
        reads++;
        return NOTHING;
      },
    });
    await node.membership.join();
    const forgets = node.forgets();
    server = "1/00000001/2";
    node.proxy.cut("rst");
    await eventually(async () => node.forgets() > forgets && node.membership.lease.isFresh);
    expect(reads).toBe(0);
    node.proxy.cut("rst");
    await eventually(async () => node.missed.length === 1);
    expect([reads, node.forgets()]).toEqual([1, forgets + 1]);
  });
});

test("the log is read from the position of the last session that had a lease", async () => {
  const { url, sql } = await database();
  const first = await positionOf(sql);
  const [since, renewLease]: [LogPosition[], ReturnType<typeof createRenewLease>] = [[], createRenewLease(url)];
  let failures = 0;
  const node = await newNode(url, "a", {
    renew: (...renewal) => (failures-- > 0 ? Promise.reject(new Error("no")) : renewLease(...renewal)),
    readMissed: async (position) => {
      since.push(position);
      return NOTHING;
    },
  });
  await node.membership.join();
  await insertEvents(sql, 1);
  const second = await positionOf(sql);
  await eventually(async () => node.received.some(({ type }) => type === "audit_log"));
  failures = 2;
  node.proxy.cut("rst");
  await eventually(async () => since.length > 0);
  await insertEvents(sql, 1);
  await positionOf(sql);
  await eventually(async () => node.missed.length > 0);
  expect(second.size).toBe(first.size + 1);
  expect(since.map(({ size, salt }) => ({ size, salt }))).toEqual(since.map(() => second));
  expect(since.length).toBeGreaterThan(1);
});

test("a node rejects a database whose log lacks what the node has received", async () => {
  const { url, sql } = await database();
  const node = await newNode(url, "a");
  await node.membership.join();
  await insertEvents(sql, 1);
  const { size } = await positionOf(sql);
  await eventually(async () => node.received.some(({ type }) => type === "audit_log"));
  // A restored backup has other events there.
  await sql`UPDATE audit_events SET salt = gen_random_uuid()`;
  node.proxy.cut("rst");
  await eventually(async () => node.membership.unavailableReason instanceof DatabaseRejectedError);
  expect(node.membership.unavailableReason?.message).toContain(`its audit log lacks event ${size - 1}`);
  expect(node.membership.lease.isFresh).toBe(false);
});
