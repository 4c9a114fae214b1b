import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { UNRESTRICTED } from "../../src/domain/principal.ts";
import type { Valid } from "../../src/domain/verdict.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createUsageReader } from "../../src/postgres/usage/usage-reader.ts";
import { createUsageStore } from "../../src/postgres/usage/usage-store.ts";
import { UsageCounter, type UsageRow } from "../../src/usage/counter.ts";
import { UsageFlusher } from "../../src/usage/flush.ts";
import { DAY, HOUR, type UsageQuery } from "../../src/usage/query.ts";
import { table } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited } from "../support/locked-row.ts";
import { seededBy } from "../support/seeded.ts";
import { startCuttingProxy } from "../support/tcp-proxy.ts";
import { openSchema } from "./new-keys.ts";

/** The usage of keys in the database, with a clock of the database that tests set (migration 0033). */

const KEY = "01991f3a-5b1c-7d21-9c44-0a1b2c3d4e5f";
const OTHER = "01991f3b-0d2e-7a90-8f13-5e6d7c8b9a01";
const RETENTION = 90 * DAY;

const valid = (keyId: string, count = 1): UsageRow => ({ keyId, outcome: "VALID", count });

async function openUsage(time: string, defect: (text: string) => string = (text) => text) {
  const { ownerUrl, pool } = await openSchema();
  const sql = postgres(ownerUrl, { max: 4, onnotice: () => {} });
  onTestFinished(() => sql.end());
  await sql`CREATE TABLE test_clock AS SELECT ${time}::timestamptz AS time`;
  await sql`CREATE FUNCTION test_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT time FROM test_clock'`;
  await sql`GRANT SELECT ON test_clock TO PUBLIC`;
  for (const name of ["usage_flush", "usage_maintain"]) {
    const [{ text } = { text: "" }] = await sql<
      { text: string }[]
    >`SELECT pg_get_functiondef(${name}::regproc) AS text`;
    await sql.unsafe(defect(text.replaceAll("clock_timestamp()", "test_clock()")));
  }
  await sql`UPDATE usage_log SET first_day = (${time}::timestamptz AT TIME ZONE 'UTC')::date`;
  const store = createUsageStore(pool);
  const reader = createUsageReader(pool);
  const processId = randomUUID();
  let id = 0;
  await store.maintain(RETENTION);
  return {
    ...{ sql, store, reader },
    setTime: async (to: string) => void (await sql`UPDATE test_clock SET time = ${to}`),
    flush: (rows: readonly UsageRow[], node = { processId, id: ++id }) => store.flush({ ...node, rows }),
    read: (query: Partial<UsageQuery> & Pick<UsageQuery, "startTime" | "endTime">) =>
      reader.query({ groupBy: [], step: null, ...query }, { offset: 0, limit: 100_000 }, UNRESTRICTED),
  };
}

const period = (start: string, end: string) => ({ startTime: new Date(start), endTime: new Date(end) });

async function partitionsOf(sql: Sql, parent: string): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = ${parent}::regclass ORDER BY 1`;
  return rows.map(({ name }) => name);
}

const BORDERS = table([
  { what: "a day", before: "2030-05-05T23:59:59.999Z", after: "2030-05-06T00:00:00Z" },
  { what: "a month", before: "2030-04-30T23:59:59.999Z", after: "2030-05-01T00:00:00Z" },
  { what: "February", before: "2030-02-28T23:59:59.999Z", after: "2030-03-01T00:00:00Z" },
  { what: "February in a leap year", before: "2028-02-28T23:59:59.999Z", after: "2028-02-29T00:00:00Z" },
  { what: "the leap day", before: "2028-02-29T23:59:59.999Z", after: "2028-03-01T00:00:00Z" },
  { what: "a year", before: "2030-12-31T23:59:59.999Z", after: "2031-01-01T00:00:00Z" },
]);

test.each(BORDERS)("verifications at the end of $what are in its last hour", async ({ before, after }) => {
  const { flush, setTime, read } = await openUsage(before);
  await flush([valid(KEY, 2)]);
  await setTime(after);
  await flush([valid(KEY, 3)]);
  const lastHour = new Date(Date.parse(after) - HOUR);
  const whole = { startTime: lastHour, endTime: new Date(Date.parse(after) + HOUR) };
  const byHour = await read({ ...whole, step: HOUR });
  expect(byHour.map(({ time, count }) => [time, count])).toEqual([
    [lastHour, 2],
    [new Date(after), 3],
  ]);
  const days = { startTime: new Date(Date.parse(after) - DAY), endTime: new Date(Date.parse(after) + DAY) };
  const byDay = await read({ ...days, step: DAY });
  expect(byDay.map(({ time, count }) => [time, count])).toEqual([
    [days.startTime, 2],
    [new Date(after), 3],
  ]);
});

test("hours are those of UTC, whatever the time zone of the session and of a daylight saving time", async () => {
  const { sql, flush, read } = await openUsage("2030-03-31T01:30:00Z");
  await sql.unsafe(`ALTER ROLE CURRENT_USER SET TimeZone = 'Europe/Berlin'`);
  await flush([valid(KEY)]);
  const [row] = await read({ ...period("2030-03-31T00:00:00Z", "2030-04-01T00:00:00Z"), step: HOUR });
  expect(row?.time).toEqual(new Date("2030-03-31T01:00:00Z"));
});

test("a flush whose response was lost counts once, and so does an earlier one", async () => {
  const { flush, read } = await openUsage("2030-01-01T00:00:00Z");
  const processId = randomUUID();
  await flush([valid(KEY)], { processId, id: 1 });
  await flush([valid(KEY)], { processId, id: 1 });
  await flush([valid(KEY, 10)], { processId, id: 2 });
  await flush([valid(KEY)], { processId, id: 1 });
  await flush([valid(KEY, 100)], { processId: randomUUID(), id: 1 });
  const [row] = await read(period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"));
  expect(row?.count).toBe(111);
});

test("the check that a flush counts once is needed", async () => {
  const { flush, read } = await openUsage("2030-01-01T00:00:00Z", (text) =>
    text.replace("WHERE last.flush_id < excluded.flush_id", ""),
  );
  const node = { processId: randomUUID(), id: 1 };
  await flush([valid(KEY)], node);
  await flush([valid(KEY)], node);
  const [row] = await read(period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"));
  expect(row?.count).toBe(2);
});

test("a flush that is repeated while the first attempt is not committed counts once", async () => {
  const { sql, flush, read } = await openUsage("2030-01-01T00:00:00Z");
  const node = { processId: randomUUID(), id: 1 };
  const committed = await sql.reserve();
  await committed`BEGIN`;
  await committed`SELECT usage_flush(${node.processId}, 1, ${[KEY]}::uuid[], '{VALID}', '{1}')`;
  const repeated = flush([valid(KEY)], node);
  await eventually(() => isAwaited(sql));
  await committed`COMMIT`;
  committed.release();
  await repeated;
  const [row] = await read(period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"));
  expect(row?.count).toBe(1);
});

test("a connection cut at any point of a flush loses nothing and counts nothing twice", async () => {
  const { url, pool: direct } = await openSchema();
  const proxy = await startCuttingProxy(url);
  onTestFinished(() => void proxy.close());
  let counted = 0;
  for (let answer = 0, isCut = true; isCut; answer++) {
    const pool = new Pool({ url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true });
    const counter = new UsageCounter();
    const store = createUsageStore(pool);
    const flusher = new UsageFlusher({ counter, store, retention: RETENTION, monotonic: () => 0 });
    counter.add({ valid: true, keyId: KEY } as Valid);
    counted++;
    proxy.cutAt(answer);
    await flusher.run().catch(() => undefined);
    isCut = proxy.isCut();
    proxy.cutAt(Number.POSITIVE_INFINITY);
    await eventually(async () => {
      await flusher.run().catch(() => undefined);
      return flusher.waiting === 0;
    });
    await pool.close();
  }
  const query = {
    startTime: new Date(0),
    endTime: new Date(Math.ceil(Date.now() / DAY) * DAY),
    groupBy: [],
    step: null,
  };
  const [row] = await createUsageReader(direct).query(query, { offset: 0, limit: 1 }, UNRESTRICTED);
  expect(counted).toBeGreaterThan(3);
  expect(row?.count).toBe(counted);
});

test("nodes flush the same keys at once, without a deadlock, and nothing is lost", async () => {
  const random = seededBy("KEYHOLD_USAGE_SEED");
  const { store, read } = await openUsage("2030-01-01T00:00:00Z");
  const keys = Array.from({ length: 300 }, () => randomUUID());
  const nodes = Array.from({ length: 4 }, () => ({ processId: randomUUID(), order: random.shuffled(keys) }));
  await Promise.all(
    nodes.map(async ({ processId, order }) => {
      for (let id = 1; id <= 10; id++) await store.flush({ processId, id, rows: order.map((key) => valid(key)) });
    }),
  );
  const rows = await read({ ...period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"), groupBy: ["key"] });
  expect(rows.map(({ count }) => count)).toEqual(keys.map(() => 40));
});

test("counts are grouped, filtered and ordered", async () => {
  const { flush, setTime, read } = await openUsage("2030-01-01T05:00:00Z");
  await flush([valid(KEY, 5), { keyId: KEY, outcome: "EXPIRED", count: 7 }, valid(OTHER, 6)]);
  await setTime("2030-01-01T07:00:00Z");
  await flush([valid(KEY, 1)]);
  const day = period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
  const countsBy = async (query: Partial<UsageQuery>) =>
    (await read({ ...day, ...query })).map(({ time, keyId, outcome, count }) => [time, keyId, outcome, count]);
  expect(await countsBy({})).toEqual([[null, null, null, 19]]);
  expect(await countsBy({ groupBy: ["key"] })).toEqual([
    [null, KEY, null, 13],
    [null, OTHER, null, 6],
  ]);
  const top = await countsBy({ groupBy: ["key"], outcome: "VALID" });
  expect(top.map(([, ...count]) => count)).toEqual([
    [KEY, null, 6],
    [OTHER, null, 6],
  ]);
  expect(await countsBy({ groupBy: ["key", "outcome"] })).toEqual([
    [null, KEY, "EXPIRED", 7],
    [null, KEY, "VALID", 6],
    [null, OTHER, "VALID", 6],
  ]);
  expect(await countsBy({ keyId: KEY, outcome: "VALID", step: HOUR })).toEqual([
    [new Date("2030-01-01T05:00:00Z"), null, null, 5],
    [new Date("2030-01-01T07:00:00Z"), null, null, 1],
  ]);
  expect(await countsBy(period("2030-01-01T06:00:00Z", "2030-01-02T00:00:00Z"))).toEqual([[null, null, null, 1]]);
  expect(await countsBy(period("2029-12-30T00:00:00Z", "2029-12-31T00:00:00Z"))).toEqual([]);
});

test("days over the retention keep their daily counts, and their partitions are dropped", async () => {
  const { sql, store, flush, setTime, read } = await openUsage("2030-01-30T12:00:00Z");
  const keys = Array.from({ length: 250 }, () => randomUUID());
  await flush(keys.map((key) => valid(key, 2)));
  await flush(keys.map((keyId) => ({ keyId, outcome: "EXPIRED", count: 1 })));
  await setTime("2030-01-31T12:00:00Z");
  await store.maintain(RETENTION);
  await flush([valid(KEY, 9)]);
  const months = { ...period("2030-01-01T00:00:00Z", "2030-08-01T00:00:00Z"), step: DAY };
  const before = await read(months);
  expect(before.map(({ count }) => count)).toEqual([750, 9]);
  await setTime("2030-04-30T12:00:00Z");
  expect(await store.maintain(RETENTION)).toBe(false);
  await setTime("2030-05-01T12:00:00Z");
  // In parts, between which the counts stay the same.
  let runs = 0;
  const once = async () =>
    (await sql<{ more: boolean }[]>`SELECT usage_maintain('90 days', 100) AS more`)[0]?.more === true;
  while (await once()) {
    runs++;
    expect(await read(months)).toEqual(before);
  }
  expect(runs).toBeGreaterThan(5);
  expect(await partitionsOf(sql, "key_usage")).not.toContain("key_usage_20300130");
  expect(await partitionsOf(sql, "key_usage")).toContain("key_usage_20300131");
  expect(await partitionsOf(sql, "key_usage_daily")).toEqual(["key_usage_daily_203001"]);
  const byKey = await read({ ...months, step: null, groupBy: ["key", "outcome"], keyId: keys[0] });
  expect(byKey.map(({ outcome, count }) => [outcome, count])).toEqual([
    ["VALID", 2],
    ["EXPIRED", 1],
  ]);
  await setTime("2032-03-01T00:00:00Z");
  for (let more = true; more; ) more = await store.maintain(RETENTION);
  expect((await partitionsOf(sql, "key_usage_daily"))[0]).toBe("key_usage_daily_203003");
});

test("a partition that is in use is dropped later, and blocks flushes for a second at most", async () => {
  const { sql, store, setTime, flush } = await openUsage("2030-01-01T12:00:00Z");
  await setTime("2030-05-01T12:00:00Z");
  const using = await sql.reserve();
  await using`BEGIN`;
  await using`SELECT count(*) FROM key_usage`;
  while (await store.maintain(RETENTION));
  expect(await partitionsOf(sql, "key_usage")).toContain("key_usage_20300101");
  await flush([valid(KEY)]);
  await using`COMMIT`;
  using.release();
  await store.maintain(RETENTION);
  expect(await partitionsOf(sql, "key_usage")).not.toContain("key_usage_20300101");
});

test("one node at a time maintains the partitions", async () => {
  const { sql, store, setTime } = await openUsage("2030-01-01T12:00:00Z");
  await setTime("2030-06-01T12:00:00Z");
  const other = await sql.reserve();
  await other`BEGIN`;
  await other`SELECT FROM usage_log FOR UPDATE`;
  expect(await store.maintain(RETENTION)).toBe(false);
  await other`ROLLBACK`;
  other.release();
  expect(await store.maintain(RETENTION)).toBe(true);
});

test.each(["-1 day", "1 hour", "401 days"])("a retention of %s is rejected", async (retention) => {
  const { sql } = await openUsage("2030-01-01T12:00:00Z");
  await expect(sql`SELECT usage_maintain(${retention}::interval, 1)`).rejects.toThrow(/from 1 to 400 days/);
});

test("the query of the docs finds keys that fail more often than usual", async () => {
  const { ownerUrl } = await openSchema();
  const sql = postgres(ownerUrl, { max: 1, onnotice: () => {}, connection: { TimeZone: "UTC" } });
  onTestFinished(() => sql.end());
  const page = await readFile(new URL("../../docs/usage.md", import.meta.url), "utf8");
  const [, query = ""] = /```sql\n(.*?)```/s.exec(page) ?? [];
  const lastHour = Math.floor(Date.now() / HOUR) * HOUR - HOUR;
  const add = async (keyId: string, outcome: string, time: number, count: number) => {
    const date = new Date(time).toISOString();
    const [hour, next] = [Number(date.slice(11, 13)), new Date(time + DAY).toISOString().slice(0, 10)];
    const day = date.slice(0, 10);
    await sql`SELECT usage_partition('key_usage', ${`key_usage_${day.replaceAll("-", "")}`}, ${day}, ${next})`;
    await sql`
      INSERT INTO key_usage AS stored VALUES (${keyId}, ${count}, ${day}, ${outcome}, array_fill(${count}::bigint, ARRAY[1], ARRAY[${hour}::int]))
      ON CONFLICT (key_id, day, outcome) DO UPDATE SET hours[${hour}::int] = excluded.count`;
  };
  const [busy, rare] = [randomUUID(), randomUUID()];
  for (let hours = 1; hours <= 168; hours++) await add(busy, "EXPIRED", lastHour - hours * HOUR, 5);
  await add(rare, "EXPIRED", lastHour - 3 * HOUR, 100);
  await add(OTHER, "VALID", lastHour, 1_000);
  for (const keyId of [busy, rare]) await add(keyId, "EXPIRED", lastHour, 50);
  expect(await sql.unsafe(query)).toMatchObject([{ key_id: rare, count: "50", median: 0 }]);
  await add(busy, "EXPIRED", lastHour, 51);
  expect(await sql.unsafe(query)).toHaveLength(2);
});
