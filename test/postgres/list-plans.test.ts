import type { Fragment, Sql } from "postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedKeys } from "../../bench/seed/seed.ts";
import type { KeyKind } from "../../src/domain/key.ts";
import { parseKeyFilter } from "../../src/keys/filter.ts";
import { type ListPosition, parseOrder } from "../../src/keys/list-order.ts";
import type { ListQuery } from "../../src/keys/ports.ts";
import { compileFilter } from "../../src/postgres/lists/filter.ts";
import { listKeys, selectPart } from "../../src/postgres/lists/list-keys.ts";
import { type ListPart, partsOf } from "../../src/postgres/lists/order.ts";
import { connect } from "../support/driver-client.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const NOW = new Date("2026-11-21T00:00:00.000Z");
const COUNT = 20_000;
const ROOT = Buffer.from("0123456789abcdefghijklmnopqrstuv");

let database: TestDatabase;
let sql: Sql;
/** Only the owner may analyze a table. */
let owner: Sql;

/** The driver with the service's settings for lists. */
beforeAll(async () => {
  database = await createTestDatabase();
  const options = { prepare: false, statementTimeout: 60_000 };
  owner = connect({ ...options, url: database.ownerUrl });
  await seedKeys(owner, { count: COUNT, now: NOW, credentials: 100, root: ROOT });
  sql = connect({ ...options, url: database.url });
});

afterAll(async () => {
  await Promise.all([sql.end(), owner.end()]);
  await database.drop();
});

function pageOf(
  filter: string,
  after: ListPosition | null = null,
  kind: KeyKind | null = "issued",
  orderBy = "",
): ListQuery {
  const parsed = parseKeyFilter(filter, kind, () => NOW.getTime());
  return { kind, actorIds: null, filter: parsed, order: parseOrder(orderBy), after, limit: 51 };
}

/** Returns the issued key at this fraction of the list, newest first. */
async function keyAfter(part: number): Promise<string> {
  const [row] = await sql<{ keyId: string }[]>`
    SELECT key_id FROM api_keys WHERE kind = 'issued'
    ORDER BY key_id DESC OFFSET (SELECT floor(count(*) * ${part}::float8) FROM api_keys WHERE kind = 'issued') LIMIT 1`;
  return row?.keyId ?? "";
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

interface Plan {
  readonly nodes: readonly string[];
  readonly indexes: readonly string[];
  /** Pages of 8 KiB that were read. */
  readonly pages: number;
}

/** Returns the plan of the first statement of a page. */
async function explain(list: ListQuery): Promise<Plan> {
  const [part] = partsOf(list);
  if (part === undefined) throw new Error("no statement");
  return explainPart(list, part);
}

async function explainPart(list: ListQuery, part: ListPart): Promise<Plan> {
  const [row] = await sql<{ "QUERY PLAN": [{ Plan: PlanNode }] }[]>`
    EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${selectPart(sql, list, part, NOW)}`;
  const root = row?.["QUERY PLAN"][0].Plan;
  if (root === undefined) throw new Error("no plan");
  const nodes = flatten(root);
  return {
    nodes: nodes.map((node) => node["Node Type"]),
    indexes: nodes.flatMap((node) => node["Index Name"] ?? []),
    pages: root["Shared Hit Blocks"] + root["Shared Read Blocks"],
  };
}

function flatten(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)];
}

const FIRST: readonly [filter: string, index: RegExp, pages: number][] = [
  ["", /^api_keys_newest$/, 60],
  ["actor_id=actor-0", /^api_keys_newest_by_actor$/, 80],
  ["actor_id=actor-999", /^api_keys_newest_by_actor$/, 80],
  ["actor_id=nobody", /^api_keys_newest_by_actor$/, 10],
  ["status=KEY_STATUS_ACTIVE", /^api_keys_newest$/, 60],
  ["status=KEY_STATUS_REVOKED", /^api_keys_newest_revoked$/, 80],
  ["status=KEY_STATUS_EXPIRED", /^api_keys_newest_expiring$/, 100],
  ["actor_id=actor-0 status=KEY_STATUS_ACTIVE", /^api_keys_newest_by_actor$/, 80],
  ["name=build-4242*", /^api_keys_by_name$/, 30],
  ["name=nothing*", /^api_keys_by_name$/, 10],
  ["metadata.team=nobody", /^api_keys_metadata$/, 20],
  ["revocation_reason=REVOCATION_REASON_KEY_COMPROMISE", /^api_keys_newest_revoked$/, 40],
  ['create_time<"2025-11-22T00:00:00Z"', /^api_keys_newest$/, 80],
  ['create_time>="2026-02-01T00:00:00Z" create_time<"2026-02-01T01:00:00Z"', /^api_keys_newest$/, 40],
  ['create_time>"2026-11-22T00:00:00Z"', /^api_keys_newest$/, 10],
];

test.each(FIRST)("the first page of %j is read from its index only", async (filter, index, pages) => {
  await expectPages(filter, index, pages);
});

test.each([
  "",
  "actor_id=actor-0",
  "status=KEY_STATUS_ACTIVE",
  "status=KEY_STATUS_REVOKED",
  "status=KEY_STATUS_EXPIRED",
])("the last pages of %j cost as much as the first one", async (filter) => {
  const first = await explain(pageOf(filter));
  const late = await explain(pageOf(filter, { keyId: await keyAfter(0.9), value: null }));
  expect(late.nodes).not.toContain("Sort");
  expect(late.pages).toBeLessThanOrEqual(first.pages * 1.5 + 10);
});

const EXPIRING = 'expire_time > now() AND expire_time <= now() + "30d"';
const UNUSED = 'NOT last_used_time >= now() - "90d" AND create_time < now() - "90d"';

test.each([
  "",
  "actor_id=actor-3 status=KEY_STATUS_ACTIVE",
  "status=KEY_STATUS_EXPIRED",
  "NOT status=KEY_STATUS_ACTIVE",
  EXPIRING,
  "expire_time > now()",
  `${UNUSED} status=KEY_STATUS_ACTIVE`,
  'last_used_time < now() - "7d" create_time > now() - "100d"',
  "-last_used_time:* scopes:region1.use",
  'create_time<="2026-02-01T00:00:00Z" create_time>"2026-01-03T00:00:00Z"',
  'NOT create_time<="2026-09-01T00:00:00Z"',
  'create_time<"2025-12-01T00:00:00Z" OR create_time>="2026-11-01T00:00:00Z"',
])("the pages of %j together contain exactly the matching keys, in the order of key_id", async (filter) => {
  const list = pageOf(filter);
  const all = await sql<{ keyId: string }[]>`
    SELECT key_id FROM api_keys WHERE kind = 'issued' AND ${compileFilter(sql, list.filter, NOW)} ORDER BY key_id DESC`;
  const expected = all.map((row) => row.keyId);
  expect(expected.length).toBeGreaterThan(100);
  expect(await walk({ ...list, limit: 1000 })).toEqual(expected);
});

const OWNERS = ["actor-0", "actor-7", "actor-999", "nobody", "actor-0"];

test.each([
  ["", null],
  ["actor_id=actor-0", null],
  [EXPIRING, null],
  [UNUSED, null],
  ["kind=KEY_KIND_IMPORTED", null],
  ["", OWNERS],
  ["status=KEY_STATUS_ACTIVE", OWNERS],
  [EXPIRING, OWNERS],
  ["", []],
])("the pages of both kinds for %j and the actors %j contain exactly the matching keys", async (filter, actorIds) => {
  const list: ListQuery = { ...pageOf(filter, null, null), actorIds };
  const isOwned = actorIds === null ? sql`true` : sql`actor_id = ANY (${actorIds}::text[])`;
  const all = await sql<{ keyId: string }[]>`
    SELECT key_id FROM api_keys WHERE ${isOwned} AND ${compileFilter(sql, list.filter, NOW)} ORDER BY key_id DESC`;
  expect(all.length > 10).toBe(actorIds?.length !== 0);
  expect(await walk({ ...list, limit: 1000 })).toEqual(all.map((row) => row.keyId));
});

test.each([
  ["", null, "Merge Append", /^api_keys_newest$/, 60],
  ["actor_id=actor-0", null, "Merge Append", /^api_keys_newest_by_actor$/, 80],
  ["actor_id=nobody", null, "Merge Append", /^api_keys_newest_by_actor$/, 20],
  ["", OWNERS, "Sort", /^api_keys_newest_by_actor$/, 400],
])(
  "the first page of both kinds for %j and the actors %j merges ordered scans by %s",
  async (filter, actorIds, merge, index, pages) => {
    const plan = await explain({ ...pageOf(filter, null, null), actorIds });
    expect(plan.nodes.filter((node) => node === "Merge Append" || node.endsWith("Sort"))).toEqual([merge]);
    expect(plan.nodes).not.toContain("Seq Scan");
    expect(new Set(plan.indexes)).toEqual(new Set([expect.stringMatching(index)]));
    expect(plan.pages).toBeLessThanOrEqual(pages);
  },
);

async function walk(list: ListQuery): Promise<string[]> {
  const page = await listKeys(sql, list, NOW);
  const last = page.at(-1);
  if (last === undefined) return [];
  const after = { keyId: last.keyId, value: last.orderValue };
  return [...page.map((row) => row.keyId), ...(await walk({ ...list, after }))];
}

test("a key created at the exact time of a filter is in its pages", async () => {
  const [row] = await sql<{ keyId: string; time: string }[]>`
    SELECT key_id, to_json(create_time) #>> '{}' AS time FROM api_keys WHERE kind = 'issued' ORDER BY key_id OFFSET 777 LIMIT 1`;
  const found = await Promise.all(
    ["=", "<=", ">="].map((operator) => walk(pageOf(`create_time${operator}"${row?.time}" key_id=${row?.keyId}`))),
  );
  expect(found).toEqual([[row?.keyId], [row?.keyId], [row?.keyId]]);
});

/** Filters on the field of an order: the first page of each, and one far behind it, read as few pages of their index as a page of keys needs. */
const ORDERED: readonly [orderBy: string, filter: string, index: RegExp][] = [
  ["create_time", "", /^api_keys_newest$/],
  ["create_time", 'create_time > now() - "300d"', /^api_keys_newest$/],
  ["expire_time", "", /^api_keys_by_expiry$/],
  ["expire_time", 'expire_time > now() AND expire_time <= now() + "200d"', /^api_keys_by_expiry$/],
  ["expire_time", "status=active", /^api_keys_by_expiry$/],
  ["expire_time", "NOT expire_time <= now()", /^api_keys_by_expiry$/],
  ["expire_time desc", "", /^api_keys_by_expiry$/],
  ["expire_time desc", "expire_time < now()", /^api_keys_by_expiry$/],
  ["last_used_time", "", /^api_keys_by_use$/],
  ["last_used_time", 'NOT last_used_time >= now() - "90d"', /^api_keys_by_use$/],
  ["last_used_time desc", 'NOT last_used_time >= now() - "90d"', /^api_keys_by_use$/],
  ["last_used_time desc", "last_used_time:*", /^api_keys_by_use$/],
  ["name", "", /^api_keys_by_name$/],
  ["name", 'name="m*"', /^api_keys_by_name$/],
  ["name desc", 'name >= "b" AND name < "n"', /^api_keys_by_name$/],
];

describe.each(ORDERED)("in the order %j with the filter %j", (orderBy, filter, index) => {
  test.each([
    ["issued", 70],
    [null, 130],
  ] as const)("any page of the kind %s is read from its index only", async (kind, pages) => {
    const first = { ...pageOf(filter, null, kind, orderBy) };
    for (const part of [0, 0.5, 0.95]) {
      const list = { ...first, after: await positionAt(first, part) };
      const plans = await Promise.all(partsOf(list).map((part) => explainPart(list, part)));
      // The planner sees that no key without a value matches the filter, or none with a value.
      const [plan, ...more] = plans.filter(({ pages }) => pages > 0);
      expect(plan?.nodes.filter((node) => /Seq Scan|Sort/.test(node))).toEqual([]);
      expect(new Set(plan?.indexes)).toEqual(new Set([expect.stringMatching(index)]));
      for (const one of [plan, ...more]) expect(one?.pages).toBeLessThanOrEqual(pages);
    }
  });
});

/** Returns the position at this fraction of a list; null at its beginning. */
async function positionAt(list: ListQuery, part: number): Promise<ListPosition | null> {
  if (part === 0) return null;
  const all = await listKeys(sql, { ...list, limit: COUNT }, NOW);
  expect(all.length).toBeGreaterThan(100);
  const last = all[Math.floor(all.length * part)];
  return last === undefined ? null : { keyId: last.keyId, value: last.orderValue };
}

/**
 * Removes the versions of rows before an update, and analyzes the table. An older snapshot would keep them, as of autovacuum when it analyzes a
 * catalog: then scans read a page for each version that has the status looked for.
 */
async function removeOldVersions(): Promise<void> {
  // VACUUM FULL counts the old versions that it keeps as rows of the indexes that it builds, ANALYZE does not.
  const keptVersions = async () => {
    await owner`VACUUM (FULL) api_keys`;
    return owner`SELECT reltuples - (SELECT count(*) FROM api_keys) AS kept FROM pg_class WHERE relname = 'api_keys_pkey'`;
  };
  await expect.poll(keptVersions, { timeout: 30_000 }).toMatchObject([{ kept: 0 }]);
  await owner`ANALYZE api_keys`;
}

/** Gives all issued keys a new status; `old` is a condition for one key in a hundred, all older than the rest. */
async function setStatus(
  revokeTime: (old: Fragment) => Fragment,
  expireTime: (old: Fragment) => Fragment,
): Promise<void> {
  const old = sql`key_id <= ${await keyAfter(0.99)}`;
  const revoked = revokeTime(old);
  await sql`
    UPDATE api_keys SET expire_time = ${expireTime(old)}, revoke_time = ${revoked},
      revocation_reason = CASE WHEN ${revoked} IS NOT NULL THEN 'REVOCATION_REASON_SUPERSEDED' END
    WHERE kind = 'issued'`;
  await removeOldVersions();
}

test("old active keys are found without reading newer rows, which are revoked", async () => {
  await setStatus(
    (old) => sql`CASE WHEN NOT ${old} THEN ${NOW}::timestamptz END`,
    () => sql`NULL::timestamptz`,
  );
  await expectPages("status=KEY_STATUS_ACTIVE", /^api_keys_newest$/, 200);
  await expectPages("status=KEY_STATUS_ACTIVE actor_id=actor-0", /^api_keys_newest_by_actor$/, 80);
});

test("old revoked and expired keys are found without reading newer rows, which are active", async () => {
  await setStatus(
    (old) => sql`CASE WHEN ${old} AND get_byte(digest, 0) < 128 THEN ${NOW}::timestamptz END`,
    (old) => sql`${NOW}::timestamptz + CASE WHEN ${old} THEN -1 ELSE 1 END * interval '1 day'`,
  );
  await expectPages("status=KEY_STATUS_REVOKED", /^api_keys_newest_revoked$/, 60);
  await expectPages("status=KEY_STATUS_EXPIRED", /^api_keys_(newest_expiring|by_expiry)$/, 250);
});

test("in the order of a field, keys beside the filter of that field are not read", async () => {
  const old = sql`key_id <= ${await keyAfter(0.99)}`;
  await owner`
    UPDATE api_keys SET revoke_time = NULL, revocation_reason = NULL,
      expire_time = ${NOW}::timestamptz + CASE WHEN ${old} THEN 29 ELSE 31 END * interval '1 day',
      last_used_time = CASE WHEN NOT ${old} THEN ${NOW}::timestamptz - interval '89 days' END
    WHERE kind = 'issued'`;
  await removeOldVersions();
  for (const [orderBy, filter] of [
    ["expire_time", EXPIRING],
    ["expire_time desc", EXPIRING],
    ["last_used_time", UNUSED],
    ["last_used_time desc", UNUSED],
  ] as const) {
    const list = pageOf(filter, null, "issued", orderBy);
    expect(await listKeys(sql, list, NOW)).toHaveLength(51);
    for (const part of partsOf(list)) expect((await explainPart(list, part)).pages).toBeLessThanOrEqual(130);
  }
});

async function expectPages(filter: string, index: RegExp, pages: number): Promise<void> {
  const plan = await explain(pageOf(filter));
  expect(plan.nodes).not.toContain("Seq Scan");
  expect(plan.indexes).toEqual([expect.stringMatching(index)]);
  expect(plan.pages).toBeLessThanOrEqual(pages);
}
