import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Sql } from "postgres";
import { UNRESTRICTED } from "../../src/domain/principal.ts";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { openPrimary } from "../../src/postgres/connection/primary.ts";
import { prepareOwned } from "../../src/postgres/migrations/schema.ts";
import { createUsageReader } from "../../src/postgres/usage/usage-reader.ts";
import { createUsageStore } from "../../src/postgres/usage/usage-store.ts";
import { DAY, HOUR, type UsageQuery } from "../../src/usage/query.ts";
import { seedKeys } from "../seed/seed.ts";

/**
 * `node bench/usage/main.ts --days 100 --keys 1000000`: fills the usage of so many keys and days by SQL, and prints what queries, flushes, the drop of
 * a partition and a day on disk cost.
 */

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "100" },
    keys: { type: "string", default: "1000000" },
    dir: { type: "string", default: tmpdir() },
  },
});
/** Keys that exist; the others are deleted ones. */
const EXISTING = 20_000;

const [days, keys] = [Number(values.days), Number(values.keys)];
const dataDir = await mkdtemp(join(values.dir, "keyhold-usage-"));
const server = await startEmbeddedPostgres({ dataDir, ifRunning: "reject", log: () => {} });
const pool = new Pool({ url: server.url, maxConnections: 2, statementTimeout: 10_000, prepare: false });
const owner = openPrimary({ url: server.url, statementTimeout: 0, prepare: false });
try {
  await prepareOwned(server);
  await measure(await owner.ready);
} finally {
  await pool.close();
  await owner.end({ timeout: 5 });
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
}

async function measure(sql: Sql): Promise<void> {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const began = performance.now();
  await seedKeys(sql, { count: EXISTING, now: new Date() });
  await fill(sql, today);
  report("seconds to fill", (performance.now() - began) / 1000);
  await measureQueries(sql, today);
  await measureSize(sql, today);
  await measureFlushes(sql);
  await measureDrop(sql, today);
}

/** Fills each day with a row of each key, with eight hours; every tenth key has one with rejections, too. */
async function fill(sql: Sql, today: number): Promise<void> {
  await sql.unsafe(`
    CREATE TABLE bench_keys AS SELECT key_id FROM api_keys
    UNION ALL SELECT md5(place::text)::uuid FROM generate_series(1, ${keys - EXISTING}) AS place`);
  for (let day = 1; day <= days; day++) {
    const date = dateOf(today - day * DAY);
    const name = partitionOf(date);
    await sql.unsafe(`
      CREATE TABLE ${name} (LIKE key_usage) WITH (fillfactor = 80);
      INSERT INTO ${name} (key_id, count, day, outcome, hours)
      SELECT key_id, 8 * n, '${date}', outcome, array_fill(n, ARRAY[8], ARRAY[9]) FROM (
        SELECT key_id, outcome, 1 + (hashtext(key_id::text || '${date}') & 1023)::bigint AS n
        FROM bench_keys CROSS JOIN (VALUES ('VALID', 1), ('EXPIRED', 10)) AS outcomes (outcome, one_in)
        WHERE uuid_hash(key_id) % one_in = 0
      ) AS made;
      ALTER TABLE ${name} ADD PRIMARY KEY (key_id, day, outcome);
      ALTER TABLE key_usage ATTACH PARTITION ${name} FOR VALUES FROM ('${date}') TO ('${dateOf(today - (day - 1) * DAY)}');
      ANALYZE ${name}`);
  }
  await sql`UPDATE usage_log SET first_day = ${dateOf(today - days * DAY)}`;
  await sql.unsafe("VACUUM");
}

async function measureQueries(sql: Sql, today: number): Promise<void> {
  const reader = createUsageReader(pool);
  const [key] = await sql<{ keyId: string; actorId: string }[]>`
    SELECT key_id AS "keyId", actor_id AS "actorId" FROM api_keys OFFSET ${EXISTING / 2} LIMIT 1`;
  const period = (length: number) => ({ startTime: new Date(today - length * DAY), endTime: new Date(today) });
  const actor = await sql`SELECT count(*)::int AS count FROM api_keys WHERE actor_id = ${key?.actorId ?? ""}`;
  const few = await sql<{ actorId: string }[]>`
    UPDATE api_keys SET actor_id = 'few' WHERE key_id = ANY (ARRAY (SELECT key_id FROM api_keys LIMIT 20)) RETURNING actor_id AS "actorId"`;
  const queries: Readonly<Record<string, UsageQuery>> = {
    "a key, 30 days by hour": { ...period(30), keyId: key?.keyId, groupBy: ["outcome"], step: HOUR },
    [`an actor with ${few.length} keys, 30 days by day`]: {
      ...period(30),
      actorId: "few",
      groupBy: ["outcome"],
      step: DAY,
    },
    [`an actor with ${actor[0]?.count} keys, 30 days by day`]: {
      ...period(30),
      actorId: key?.actorId,
      groupBy: [],
      step: DAY,
    },
    "top 100 keys of a day": { ...period(1), groupBy: ["key"], step: null },
    "top 100 keys of a day, one outcome": { ...period(1), groupBy: ["key"], step: null, outcome: "VALID" },
    "all keys, 30 days by day": { ...period(30), groupBy: [], step: DAY },
  };
  const [size] = await sql<
    { rows: number }[]
  >`SELECT sum(reltuples)::float8 AS rows FROM pg_class WHERE relname ~ '^key_usage_2' AND relkind = 'r'`;
  report("rows", size?.rows ?? 0);
  for (const [name, query] of Object.entries(queries)) {
    const limit = query.step === null ? 100 : 1_000;
    const times = [];
    for (let run = 0; run < 6; run++) {
      const start = performance.now();
      const rows = await reader.query(query, { offset: 0, limit }, UNRESTRICTED).catch((error) => String(error));
      times.push(performance.now() - start);
      if (run === 0) report(`${name}: rows`, rows.length);
    }
    const [cold = 0] = times;
    report(`${name}: first, median and slowest of the next five (ms)`, [cold, ...medianAndMax(times.slice(1))]);
  }
}

async function measureSize(sql: Sql, today: number): Promise<void> {
  const [size] = await sql<{ bytes: number }[]>`
    SELECT pg_total_relation_size(${partitionOf(dateOf(today - DAY))}::regclass)::float8 AS bytes`;
  report("MB of a day", (size?.bytes ?? 0) / 1e6);
}

/** Two nodes flush the same 50,000 keys at once. */
async function measureFlushes(sql: Sql): Promise<void> {
  const ids = await sql<{ keyId: string }[]>`SELECT key_id AS "keyId" FROM bench_keys LIMIT 50000`;
  const store = createUsageStore(pool);
  await store.maintain(400 * DAY);
  const flushAll = async (processId: string, from: number) => {
    for (let start = 0; start < ids.length; start += 2_000) {
      const rows = ids.slice(start, start + 2_000).map(({ keyId }) => ({ keyId, outcome: "VALID", count: 3 }) as const);
      await store.flush({ processId, id: from + start, rows });
    }
  };
  const nodes = [randomUUID(), randomUUID()];
  for (const [round, what] of ["first of a day", "later", "later", "later"].entries()) {
    const start = performance.now();
    await flushAll(nodes[0] ?? "", 1 + round * 1e6);
    report(`flush of ${ids.length} keys, ${what} (ms)`, performance.now() - start);
  }
  const start = performance.now();
  await Promise.all(nodes.map((node) => flushAll(node, 1e7)));
  report(`two nodes flush the same ${ids.length} keys at once (ms)`, performance.now() - start);
}

async function measureDrop(sql: Sql, today: number): Promise<void> {
  const start = performance.now();
  await sql`SELECT usage_drop('key_usage', ${dateOf(today - (days - 1) * DAY)}::date)`;
  report("drop of a partition (ms)", performance.now() - start);
}

function medianAndMax(times: readonly number[]): [number, number] {
  const sorted = times.toSorted((a, b) => a - b);
  return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0];
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function partitionOf(date: string): string {
  return `key_usage_${date.replaceAll("-", "")}`;
}

function report(name: string, value: number | readonly number[]): void {
  const numbers = [value].flat().map((one) => Math.round(one * 100) / 100);
  console.info(`${name}: ${numbers.join(", ")}`);
}
