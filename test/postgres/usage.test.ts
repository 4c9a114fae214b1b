import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import postgres, { type Sql } from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { KEY_KINDS } from "../../src/domain/key.ts";
import { UNRESTRICTED } from "../../src/domain/principal.ts";
import type { Valid } from "../../src/domain/verdict.ts";
import type { NewKey } from "../../src/keys/ports.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { migrate, readMigrations } from "../../src/postgres/migrations/migrate.ts";
import { createUsageReader } from "../../src/postgres/usage/usage-reader.ts";
import { createUsageStore } from "../../src/postgres/usage/usage-store.ts";
import { OUTCOMES, UsageCounter, type UsageRow } from "../../src/usage/counter.ts";
import { UsageFlusher, type UsageStore } from "../../src/usage/flush.ts";
import { DAY, HOUR, type UsageQuery } from "../../src/usage/query.ts";
import { table } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { isAwaited } from "../support/locked-row.ts";
import { anyServer } from "../support/no-cluster.ts";
import { createEmptyDatabase } from "../support/postgres.ts";
import { type Seeded, seededBy } from "../support/seeded.ts";
import { startCuttingProxy } from "../support/tcp-proxy.ts";
import { newKey, openSchema } from "./new-keys.ts";

/** The usage of keys in the database, with a clock of the database that tests set (migration 0033). */

const KEY = "01991f3a-5b1c-7d21-9c44-0a1b2c3d4e5f";
const OTHER = "01991f3b-0d2e-7a90-8f13-5e6d7c8b9a01";
const RETENTION = 90 * DAY;

const valid = (keyId: string, count = 1): UsageRow => ({ keyId, outcome: "VALID", count });
const units = (keyId: string, limit: string, count: number): UsageRow => ({ keyId, outcome: `units/${limit}`, count });

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
  const store = createUsageStore(pool, anyServer);
  const reader = createUsageReader(pool);
  const processId = randomUUID();
  let id = 0;
  await store.maintain(RETENTION);
  return {
    ...{ sql, pool, store, reader },
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

/** Hours by which the clocks of nodes are wrong. */
const CLOCK_ERRORS = [-31, 0, 31];

/** Counts one verification on each of several nodes with wrong clocks, and stores them. */
async function flushByNodes(store: UsageStore, time: string): Promise<void> {
  onTestFinished(() => void vi.useRealTimers());
  for (const hours of CLOCK_ERRORS) {
    vi.setSystemTime(Date.parse(time) + hours * HOUR);
    const counter = new UsageCounter();
    counter.add({ valid: true, keyId: KEY } as Valid);
    await new UsageFlusher({ counter, store, retention: RETENTION, monotonic: () => 0 }).run();
  }
  vi.useRealTimers();
}

test.each(BORDERS)("verifications at the end of $what are in its last hour", async ({ before, after }) => {
  const { store, setTime, read } = await openUsage(before);
  await flushByNodes(store, before);
  await setTime(after);
  await flushByNodes(store, after);
  await flushByNodes(store, after);
  const times = { hour: new Date(Date.parse(after) - HOUR), day: new Date(Date.parse(after) - DAY) };
  const week = { startTime: new Date(Date.parse(after) - 3 * DAY), endTime: new Date(Date.parse(after) + 3 * DAY) };
  const countsBy = async (step: number) =>
    (await read({ ...week, step })).map(({ time, count }) => [time, count] as const);
  expect(await countsBy(HOUR)).toEqual([
    [times.hour, 3],
    [new Date(after), 6],
  ]);
  const byDay = [
    [times.day, 3],
    [new Date(after), 6],
  ];
  expect(await countsBy(DAY)).toEqual(byDay);
  await setTime(new Date(Date.parse(after) + 3 * DAY).toISOString());
  while (await store.maintain(RETENTION));
  expect(await countsBy(DAY)).toEqual(byDay);
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

test("a flush is repeated on the server of the feed if another has stored it", async () => {
  const [wrong, right] = [await openUsage("2030-01-01T00:00:00Z"), await openUsage("2030-01-01T00:00:00Z")];
  let store = createUsageStore(wrong.pool, {
    server: "the server of the feed",
    requireServer: (server, expected) => expect(server).toBe(expected),
  });
  const counter = new UsageCounter();
  const current: UsageStore = { maintain: async () => false, flush: (flush) => store.flush(flush) };
  const flusher = new UsageFlusher({ counter, store: current, retention: RETENTION, monotonic: () => 0 });
  counter.add({ valid: true, keyId: KEY } as Valid);
  await expect(flusher.run()).rejects.toThrow(/the server of the feed/);
  store = right.store;
  await flusher.run();
  const [row] = await right.read(period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"));
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
    const store = createUsageStore(pool, anyServer);
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

test("units are added up by limit, and no query mixes them with verifications", async () => {
  const { sql, flush, setTime, reader } = await openUsage("2030-01-01T05:00:00Z");
  await flush([
    valid(KEY, 3),
    units(KEY, "tokens", 70),
    units(KEY, "requests", 3),
    valid(OTHER),
    units(OTHER, "tokens", 900),
  ]);
  await setTime("2030-01-01T23:59:59Z");
  await flush([valid(KEY), units(KEY, "tokens", 5)]);
  const day = period("2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z");
  // A page that `top_usage` could have.
  const read = (query: Partial<UsageQuery>) =>
    reader.query({ ...day, groupBy: [], step: null, ...query }, { offset: 0, limit: 100 }, UNRESTRICTED);
  const countsBy = async (query: Partial<UsageQuery>) =>
    (await read(query)).map(({ time, keyId, outcome, limit, count }) =>
      [time?.getUTCHours(), keyId, outcome, limit, count].filter((value) => value !== undefined && value !== null),
    );
  const readAll = async () => ({
    all: await countsBy({}),
    outcomes: await countsBy({ groupBy: ["outcome"] }),
    keys: await countsBy({ groupBy: ["key"] }),
    keysByOutcome: await countsBy({ groupBy: ["key", "outcome"] }),
    limits: await countsBy({ groupBy: ["limit"] }),
    tokens: await countsBy({ limit: "tokens" }),
    users: await countsBy({ limit: "tokens", groupBy: ["key"] }),
    hours: await countsBy({ limit: "tokens", groupBy: ["limit"], keyId: KEY, step: HOUR }),
    other: await countsBy({ limit: "token" }),
    view: await sql`SELECT sum(count)::int AS count FROM usage_by_hour`,
  });
  const expected = {
    all: [[5]],
    outcomes: [["VALID", 5]],
    keys: [
      [KEY, 4],
      [OTHER, 1],
    ],
    keysByOutcome: [
      [KEY, "VALID", 4],
      [OTHER, "VALID", 1],
    ],
    limits: [
      ["tokens", 975],
      ["requests", 3],
    ],
    tokens: [[975]],
    users: [
      [OTHER, 900],
      [KEY, 75],
    ],
    hours: [
      [5, "tokens", 70],
      [23, "tokens", 5],
    ],
    other: [],
    view: [{ count: 5 }],
  };
  expect(await readAll()).toEqual(expected);
  await setTime("2030-01-03T00:00:00Z");
  for (let more = true; more; ) more = (await sql`SELECT usage_maintain('90 days', 1000) AS more`)[0]?.more;
  expect(await sql`SELECT FROM key_usage WHERE day < '2030-01-02'`).toEqual([]);
  expect(await readAll()).toEqual(expected);
});

/** Flushes random counts of 300 keys, half of which exist, into a few hours of three days. */
async function fillDays({ sql, flush, setTime }: Awaited<ReturnType<typeof openUsage>>, random: Seeded) {
  const existing = Array.from({ length: 150 }, () => newKey());
  await insertKeys(sql, existing, random);
  const keys = [...existing.map(({ key }) => key.keyId), ...Array.from({ length: 150 }, () => randomUUID())];
  for (const time of ["2030-01-30T00:00:00Z", "2030-01-30T23:00:00Z", "2030-01-31T05:00:00Z", "2030-02-01T12:00:00Z"]) {
    await setTime(time);
    for (let times = 0; times < 2; times++) {
      const used = random.shuffled(keys).slice(0, 250);
      await flush(used.map((keyId) => ({ keyId, outcome: random.pick(STORED), count: 1 + random.below(5) })));
    }
  }
  return keys;
}

/** What counts are stored by. */
const STORED = [...OUTCOMES, "units/requests", "units/tokens"] as const;

async function insertKeys(sql: Sql, keys: readonly NewKey[], random: Seeded): Promise<void> {
  for (const { key, digest } of keys)
    await sql`
      INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
      VALUES (${key.keyId}, ${random.pick(KEY_KINDS)}, ${key.name}, ${`actor_${random.below(5)}`}, '{}', '{}', ${key.hint},
        now(), now(), ${Buffer.from(digest.digest)}, ${digest.keyId})`;
}

/** Every form of a query, over one day, a part of two, and all. */
function allQueries(keyId: string): UsageQuery[] {
  const filters = [{}, { keyId }, { actorId: "actor_1" }, { kind: "issued" as const }, { outcome: "EXPIRED" }];
  const ofUnits = [
    { limit: "tokens" },
    { limit: "tokens", keyId },
    { limit: "tokens", actorId: "actor_1" },
    { keyId },
    {},
  ];
  const groups = [[], ["key"], ["outcome"], ["key", "outcome"], ["key", "actor"], ["actor"]] as const;
  const unitGroups = [["limit"], ["key", "limit"], ["actor", "limit"]] as const;
  const selections = [
    ...filters.flatMap((filter) => groups.map((groupBy) => ({ ...filter, groupBy }))),
    ...ofUnits.flatMap((filter) => unitGroups.map((groupBy) => ({ ...filter, groupBy }))),
  ];
  const periods = [
    period("2030-01-30T00:00:00Z", "2030-01-31T00:00:00Z"),
    period("2030-01-30T10:00:00Z", "2030-01-31T06:00:00Z"),
    period("2030-01-01T00:00:00Z", "2030-02-10T00:00:00Z"),
  ];
  return periods.flatMap((times) =>
    selections.flatMap((selection) => [null, HOUR, DAY].map((step) => ({ ...times, ...selection, step }))),
  );
}

test("every query returns the same before, while and after days are packed", async () => {
  const random = seededBy("KEYHOLD_USAGE_SEED");
  const usage = await openUsage("2030-01-30T00:00:00Z");
  const { sql, reader, setTime } = usage;
  const keys = await fillDays(usage, random);
  // A step of a day takes whole days.
  const queries = random
    .shuffled(allQueries(random.pick(keys)))
    .filter(({ startTime, step }) => step !== DAY || startTime.getTime() % DAY === 0)
    .slice(0, 60);
  const restricted = { ...UNRESTRICTED, actorIds: ["actor_2", "actor_3"] };
  const readAll = async () => {
    const answers = [];
    for (const query of queries)
      for (const restrictions of [UNRESTRICTED, restricted])
        for (const page of [
          { offset: 0, limit: 20 },
          { offset: 10, limit: 100_000 },
        ])
          answers.push({ query, page, restrictions, counts: await reader.query(query, page, restrictions) });
    return answers;
  };
  const before = await readAll();
  await setTime("2030-02-03T01:00:00Z");
  const step = async () => (await sql<{ more: boolean }[]>`SELECT usage_maintain('90 days', 100) AS more`)[0]?.more;
  let steps = 0;
  for (; await step(); steps++) if (steps === 2) expect(await readAll()).toEqual(before);
  expect(steps).toBeGreaterThan(8);
  expect(await readAll()).toEqual(before);
  expect(await partitionsOf(sql, "key_usage")).toEqual(
    ["20300203", "20300204", "20300205", "20300206"].map((day) => `key_usage_${day}`),
  );
});

test("a day closes an hour after its end; the retention drops hours, and two years drop days", async () => {
  const { sql, store, flush, setTime, read } = await openUsage("2030-01-30T12:00:00Z");
  await flush([valid(KEY, 2), { keyId: KEY, outcome: "EXPIRED", count: 1 }, valid(OTHER, 4)]);
  const maintain = async (time: string) => {
    await setTime(time);
    for (let more = true; more; ) more = await store.maintain(RETENTION);
  };
  const firstDay = async () => (await sql`SELECT first_day::text AS day FROM usage_log`)[0]?.day;
  await maintain("2030-01-31T00:59:59Z");
  expect(await firstDay()).toBe("2030-01-30");
  await maintain("2030-01-31T01:00:00Z");
  expect(await firstDay()).toBe("2030-01-31");
  const month = period("2030-01-01T00:00:00Z", "2030-02-01T00:00:00Z");
  const counts = async (query: Partial<UsageQuery>) => (await read({ ...month, ...query })).map(({ count }) => count);
  expect([await counts({ step: HOUR }), await counts({ step: DAY })]).toEqual([[7], [7]]);
  // 90 days after the end of the week.
  await maintain("2030-05-04T12:00:00Z");
  expect(await counts({ step: HOUR })).toEqual([7]);
  await maintain("2030-05-05T12:00:00Z");
  expect([await counts({ step: HOUR }), await counts({ step: DAY })]).toEqual([[], [7]]);
  expect(await counts({ keyId: KEY, groupBy: ["outcome"] })).toEqual([2, 1]);
  await sql`UPDATE usage_log SET first_day = '2032-01-30'`;
  await maintain("2032-01-31T12:00:00Z");
  expect(await counts({ step: DAY })).toEqual([7]);
  await maintain("2032-02-01T12:00:00Z");
  expect(await counts({ step: DAY })).toEqual([]);
  expect(await sql`SELECT FROM top_usage`).toEqual([]);
});

test("migration 0036 keeps the usage of the days before", async () => {
  const database = await createEmptyDatabase();
  onTestFinished(() => database.drop());
  const sql = postgres(database.ownerUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end());
  const migrations = await readMigrations();
  await migrate(sql, migrations.slice(0, 35));
  // A day that is copied, and one that is copied in part.
  await sql`SELECT usage_partition('key_usage_daily', 'key_usage_daily_203001', '2030-01-01', '2030-02-01')`;
  await sql`SELECT usage_partition('key_usage', 'key_usage_20300102', '2030-01-02', '2030-01-03')`;
  await sql`INSERT INTO key_usage_daily VALUES (${KEY}, 5, '2030-01-01', 'VALID'), (${KEY}, 7, '2030-01-02', 'VALID')`;
  await sql`INSERT INTO key_usage VALUES (${KEY}, 7, '2030-01-02', 'VALID', '[3:3]={7}'), (${OTHER}, 1, '2030-01-02', 'VALID', '[3:3]={1}')`;
  await sql`UPDATE usage_log SET first_day = '2030-01-02', copied_key_id = ${KEY}`;
  await migrate(sql, migrations);
  const pool = new Pool({ url: database.ownerUrl, maxConnections: 1, statementTimeout: 10_000, prepare: true });
  onTestFinished(() => pool.close());
  const query = { ...period("2030-01-01T00:00:00Z", "2030-02-01T00:00:00Z"), groupBy: ["key"], step: DAY } as const;
  const counts = await createUsageReader(pool).query(query, { offset: 0, limit: 10 }, UNRESTRICTED);
  expect(counts.map(({ keyId, count }) => [keyId, count])).toEqual([
    [KEY, 5],
    [KEY, 7],
    [OTHER, 1],
  ]);
});

test("the top of a day has 1,001 keys of each outcome, from all parts of the day", async () => {
  const { sql, flush, setTime, reader } = await openUsage("2030-01-30T12:00:00Z");
  const keys = Array.from({ length: 1_500 }, () => randomUUID());
  await flush(keys.flatMap((key, place) => [valid(key, 1 + (place % 1_200)), units(key, "tokens", 9)]));
  await setTime("2030-02-03T00:00:00Z");
  const day = { ...period("2030-01-30T00:00:00Z", "2030-01-31T00:00:00Z"), groupBy: ["key"], step: null } as const;
  const read = (offset: number, limit: number) => reader.query(day, { offset, limit }, UNRESTRICTED);
  const before = await read(0, 1_400);
  for (let more = true; more; ) more = (await sql`SELECT usage_maintain('90 days', 400) AS more`)[0]?.more;
  expect(await sql`SELECT outcome, count(*)::int AS count FROM top_usage GROUP BY 1 ORDER BY 1`).toEqual([
    { outcome: "", count: 1_001 },
    { outcome: "VALID", count: 1_001 },
  ]);
  expect(await read(0, 1_001)).toEqual(before.slice(0, 1_001));
  expect(await read(900, 500)).toEqual(before.slice(900));
  // The table answers, not the packed counts.
  await sql`DELETE FROM packed_usage`;
  expect(await read(0, 100)).toEqual(before.slice(0, 100));
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
  await sql`UPDATE usage_log SET first_day = first_day - 9`;
  const add = async (keyId: string, outcome: string, time: number, count: number) => {
    const date = new Date(time).toISOString();
    const [day, hour] = [date.slice(0, 10), Number(date.slice(11, 13))];
    await sql`SELECT usage_live_partition(${day})`;
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
  const found = await sql.unsafe(query);
  expect(found).toHaveLength(2);
  for (let more = true; more; ) more = (await sql`SELECT usage_maintain('90 days', 1000) AS more`)[0]?.more;
  expect(await sql.unsafe(query)).toEqual(found);
});
