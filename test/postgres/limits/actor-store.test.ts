import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { parseActorFilter } from "../../../src/actors/filter.ts";
import type { Quota, RateLimit } from "../../../src/domain/rate-limit.ts";
import { invalidating, propagating } from "../../../src/postgres/cluster/change-committer.ts";
import { parseFeedEvent } from "../../../src/postgres/cluster/change-feed-events.ts";
import type { Database } from "../../../src/postgres/connection/pool.ts";
import { createKeyStore } from "../../../src/postgres/key-store.ts";
import { createFindKeys } from "../../../src/postgres/keys/verification-store.ts";
import { createActorStore } from "../../../src/postgres/limits/actor-store.ts";
import type { KeyChange } from "../../../src/verify/reader.ts";
import { replayAuditLog } from "../../support/audit-replay.ts";
import { eventually } from "../../support/keyhold.ts";
import { anyServer, noNodes } from "../../support/no-cluster.ts";
import { operator } from "../../support/principal.ts";
import { newKey, openSchema } from "../new-keys.ts";

const LIMIT: RateLimit = {
  ...{ name: "requests", quota: 60, window: 60_000, burst: 60 },
  ...{ enforcement: "ENFORCED", onDemand: false, onOutage: "DENY" },
};
const OTHER: RateLimit = {
  ...LIMIT,
  name: "other",
  burst: 5,
  enforcement: "SHADOW",
  onDemand: true,
  onOutage: "ALLOW",
};

const MONTHLY: Quota = {
  name: "monthly",
  limit: 100,
  period: "MONTH",
  anchorTime: Date.UTC(2001, 0, 1),
  adjustTime: null,
};

const TIME = new Date("2026-11-22T09:00:00Z");
const LATER = new Date("2026-11-22T10:00:00Z");

/** Ids that a notification, a path or a pattern could mistake. */
const ACTOR_IDS = ["team_42", "a b", "ä/%2F:*", "key 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", "😀".repeat(60), "\\x41"];

async function open() {
  const { url, ownerUrl, pool } = await openSchema();
  const [sql, owner] = [postgres(url, { max: 2 }), postgres(ownerUrl, { max: 2, onnotice: () => {} })];
  onTestFinished(async () => void (await Promise.all([sql.end(), owner.end()])));
  const invalidated: KeyChange[] = [];
  const commit = invalidating(propagating(pool, noNodes), (change) => void invalidated.push(change));
  const store = createActorStore({ reads: pool, lists: pool }, commit);
  const keys = createKeyStore({ reads: pool, lists: pool }, commit);
  const find = createFindKeys(pool, anyServer);
  const limitsOf = async (keyId: string) => (await find([{ keyId, digests: [] }]))[0]?.[0]?.actorLimits;
  const put = (actorId: string, rateLimits: readonly RateLimit[] | null, time = TIME) =>
    store.put(actorId, { rateLimits }, time, operator);
  const putQuotas = (actorId: string, quotas: readonly Quota[] | null, time = TIME) =>
    store.put(actorId, { quotas }, time, operator);
  return { sql, owner, store, keys, limitsOf, put, putQuotas, invalidated };
}

test("keys and actors with equal rate limits have the same objects, of which each server keeps many", async () => {
  const { store, keys, limitsOf, put } = await open();
  const [one, other] = [newKey(), newKey()];
  await keys.insert([one, other]);
  await put("actor_1", [LIMIT, OTHER]);
  const read = await limitsOf(one.key.keyId);
  expect(read?.limits).toEqual([LIMIT, OTHER]);
  expect((await limitsOf(other.key.keyId))?.limits).toBe(read?.limits);
  expect((await store.find("actor_1"))?.rateLimits).toBe(read?.limits);
});

test("a key is read with the limits that its actor has", async () => {
  const { keys, limitsOf, put, store } = await open();
  const key = newKey();
  const { keyId, actorId } = key.key;
  await keys.insert([key]);
  expect(await limitsOf(keyId)).toBeUndefined();
  await put("another", [LIMIT]);
  expect(await limitsOf(keyId)).toBeUndefined();
  await put(actorId, [LIMIT, OTHER]);
  expect(await limitsOf(keyId)).toEqual({ actorId, limits: [LIMIT, OTHER] });
  await put(actorId, null);
  expect(await limitsOf(keyId)).toBeUndefined();
  await put(actorId, [OTHER]);
  expect(await store.delete(actorId, operator)).toBe(true);
  expect(await limitsOf(keyId)).toBeUndefined();
});

test("an actor is created by its first update, and found until it is deleted", async () => {
  const { store, put } = await open();
  expect(await store.find("team_42")).toBeNull();
  const created = { actorId: "team_42", rateLimits: [LIMIT], quotas: null, createTime: TIME, updateTime: TIME };
  expect(await put("team_42", [LIMIT])).toEqual(created);
  const updated = { ...created, rateLimits: null, updateTime: LATER };
  expect(await put("team_42", null, LATER)).toEqual(updated);
  expect(await store.find("team_42")).toEqual(updated);
  expect(await store.delete("team_42", operator)).toBe(true);
  expect(await store.delete("team_42", operator)).toBe(false);
  expect(await store.find("team_42")).toBeNull();
});

test("rate limits and quotas are updated apart, and a key is read with both", async () => {
  const { keys, limitsOf, put, putQuotas } = await open();
  const key = newKey();
  const { keyId, actorId } = key.key;
  await keys.insert([key]);
  await putQuotas(actorId, [MONTHLY]);
  expect(await limitsOf(keyId)).toEqual({ actorId, limits: [MONTHLY] });
  expect(await put(actorId, [LIMIT])).toMatchObject({ rateLimits: [LIMIT], quotas: [MONTHLY] });
  expect(await limitsOf(keyId)).toEqual({ actorId, limits: [LIMIT, MONTHLY] });
  await putQuotas(actorId, null);
  expect(await limitsOf(keyId)).toEqual({ actorId, limits: [LIMIT] });
});

test("an adjustment changes the bucket of the quota, and notifies as an update does", async () => {
  const { sql, store, putQuotas, limitsOf, keys, invalidated } = await open();
  const key = newKey();
  const { keyId, actorId } = key.key;
  await keys.insert([key]);
  await putQuotas(actorId, [MONTHLY, { ...MONTHLY, name: "other" }]);
  const adjust = (delta: number, quota = "monthly") => store.adjustQuota(actorId, { quota, delta }, LATER, operator);
  const bucket = async () =>
    await sql`SELECT bucket, level, burst, reset_time > now() AS runs FROM limit_buckets WHERE level > 0`;
  const bucketOf = (level: number) => [{ bucket: `actor/${actorId}/monthly:quota`, level, burst: 100, runs: true }];
  invalidated.length = 0;
  const adjusted = { ...MONTHLY, adjustTime: LATER.getTime() };
  expect(await adjust(7)).toMatchObject({ quotas: [adjusted, { name: "other", adjustTime: null }], updateTime: LATER });
  expect(await bucket()).toEqual(bucketOf(7));
  await adjust(-9);
  expect(await bucket()).toEqual([]);
  await adjust(200);
  expect(await bucket()).toEqual(bucketOf(200));
  expect(invalidated).toEqual(Array(3).fill({ keyIds: [], digests: [], actorIds: [actorId] }));
  expect((await limitsOf(keyId))?.limits).toMatchObject([adjusted, { name: "other" }]);
  expect(await adjust(1, "unknown")).toBeNull();
  expect(await store.adjustQuota("no one", { quota: "monthly", delta: 1 }, LATER, operator)).toBeNull();
});

test("actors are listed by id in pages, and to a restricted caller only its own", async () => {
  const { store, put } = await open();
  for (const actorId of ACTOR_IDS) await put(actorId, [LIMIT]);
  const ids = async (after: string | null, limit: number, actorIds: readonly string[] | null = null, text = "") => {
    const filter = parseActorFilter(text, () => 0);
    return (await store.list({ filter, after, limit }, { actorIds })).map(({ actorId }) => actorId);
  };
  const sorted = ACTOR_IDS.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  expect(await ids(null, 100)).toEqual(sorted);
  expect([...(await ids(null, 2)), ...(await ids(sorted[1] ?? "", 100))]).toEqual(sorted);
  expect(await ids(null, 100, ["unknown", "a b"])).toEqual(["a b"]);
  expect(await ids(null, 100, [])).toEqual([]);
  const either = 'actor_id="a b" OR actor_id:*';
  expect(await ids(null, 100, ["a b", "team_42"], either)).toEqual(["a b", "team_42"]);
  expect(await ids("a b", 100, ["a b", "team_42"], either)).toEqual(["team_42"]);
});

test("a change notifies all nodes of the actor, and invalidates the cache of this one", async () => {
  const { sql, owner, store, put, invalidated } = await open();
  const received: unknown[] = [];
  await sql.listen("keyhold_changes", (text) => void received.push(parseFeedEvent("keyhold_changes", text)));
  for (const actorId of ACTOR_IDS) {
    await put(actorId, [LIMIT]);
    await put(actorId, [OTHER]);
    await store.delete(actorId, operator);
  }
  expect(invalidated).toEqual(
    ACTOR_IDS.flatMap((actorId) => Array(3).fill({ keyIds: [], digests: [], actorIds: [actorId] })),
  );
  await put("one", [LIMIT]);
  await owner`UPDATE actors SET actor_id = 'two'`;
  await owner`TRUNCATE actors`;
  const actor = (actorId: string) => ({ type: "actor", actorId });
  const expected = [
    ...ACTOR_IDS.flatMap((actorId) => Array(3).fill(actor(actorId))),
    ...[actor("one"), actor("one"), actor("two"), { type: "everything" }],
  ];
  await eventually(async () => received.length === expected.length);
  expect(received).toEqual(expected);
});

test("the events of changes give the table, and are found by the actor", async () => {
  const { owner, store, put } = await open();
  await put("team_42", [LIMIT, OTHER]);
  await put("team_42", null, LATER);
  await put("team_7", [LIMIT]);
  await store.delete("team_42", operator);
  const { events, violations } = await replayAuditLog(owner);
  expect(violations).toEqual([]);
  const ofActors = events.filter(({ action }) => action.startsWith("actor."));
  expect(ofActors.map(({ action, resourceId }) => `${action} ${resourceId}`)).toEqual([
    ...["actor.created team_42", "actor.updated team_42", "actor.created team_7", "actor.deleted team_42"],
  ]);
  expect(ofActors[0]?.after?.rate_limits).toMatchObject([{ name: "requests", window: "60s" }, { name: "other" }]);
  expect(ofActors[1]?.before).toMatchObject({ rate_limits: [{ name: "requests" }, { name: "other" }] });
  expect(await owner`SELECT FROM audit_events WHERE actor_id = 'team_42'`).toHaveLength(3);
  await owner`TRUNCATE actors`;
  expect((await replayAuditLog(owner)).violations).toEqual([]);
});

test("no actor has limits while a server that does not apply them has a lease, and no such server joins then", async () => {
  const { sql, put, putQuotas, store } = await open();
  const join = () => sql`
    INSERT INTO nodes (lease_id, name, version, ttl_ms, verification_checks)
    VALUES (gen_random_uuid(), 'old:1', '0.3.0', 3000, '{DISABLED,ADDRESS,ACTORS}')`;
  await join();
  const rejected = { code: "SERVERS_OUTDATED", metadata: { servers: "old:1 (0.3.0)" } };
  await expect(put("team_42", [LIMIT])).rejects.toMatchObject(rejected);
  await expect(putQuotas("team_42", [MONTHLY])).rejects.toMatchObject(rejected);
  await put("team_42", null);
  await sql`DELETE FROM nodes`;
  await put("team_42", [LIMIT]);
  await expect(join()).rejects.toThrow("an actor has the control LIMITS, which server old:1 (0.3.0) does not apply");
  await put("team_42", null);
  await putQuotas("team_42", [MONTHLY]);
  await expect(join()).rejects.toThrow("an actor has the control LIMITS, which server old:1 (0.3.0) does not apply");
  await store.delete("team_42", operator);
  await join();
});

test("a filter whose actors the database does not find in time names the field that has an index", async () => {
  const { owner, sql, put } = await open();
  await put("team_42", [LIMIT]);
  const lists: Database = {
    run: (work) =>
      sql.begin(async (slow) => {
        await slow`SET LOCAL statement_timeout = 50`;
        return work(slow as unknown as Sql, { isReplicationCancelled: false });
      }) as never,
  };
  const store = createActorStore({ reads: lists, lists }, () => Promise.reject(new Error("reads only")));
  const filter = parseActorFilter("quotas:monthly", () => 0);
  await owner.begin(async (lock) => {
    await lock`LOCK TABLE actors`;
    await expect(store.list({ filter, after: null, limit: 1 }, { actorIds: null })).rejects.toMatchObject({
      code: "LIST_TOO_SLOW",
      message: "filter: selects too few of too many actors; add a condition on actor_id",
    });
  });
});
