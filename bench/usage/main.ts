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
import { anyServer } from "../../test/support/no-cluster.ts";
import { seedKeys } from "../seed/seed.ts";

/**
 * `node bench/usage/main.ts --days 90 --keys 1000000`: fills a day of so many keys by SQL, packs it, copies it to so many days, and prints what a day
 * costs on disk, and what queries, flushes and the drop of a partition cost. `--limits 1`: each key has units of one limit, too.
 */

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "90" },
    keys: { type: "string", default: "1000000" },
    limits: { type: "string", default: "0" },
    dir: { type: "string", default: tmpdir() },
  },
});
/** Keys that exist; the others are deleted ones. */
const EXISTING = 20_000;

const [days, keys] = [Number(values.days), Number(values.keys)];
const dataDir = await mkdtemp(join(values.dir, "keyhold-usage-"));
const server = await startEmbeddedPostgres({ dataDir, ifRunning: "reject", log: () => {} });
const pool = new Pool({ url: server.url, maxConnections: 2, statementTimeout: 60_000, prepare: false });
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
  // The last day that is closed at any time of today.
  const last = Math.floor(Date.now() / DAY) * DAY - 2 * DAY;
  await seedKeys(sql, { count: EXISTING, now: new Date() });
  await sql`UPDATE usage_log SET first_day = ${dateOf(last)}`;
  await fillDay(sql, dateOf(last));
  await reportRelation(sql, "key_usage", "MB of a day that is not packed");
  await measureQueries({ "top 100 keys of a day that is not packed": { ...day(last), groupBy: ["key"] } });
  await sql.unsafe(`
    INSERT INTO key_usage (key_id, count, day, outcome, hours) SELECT key_id, count, current_date, outcome, hours FROM key_usage`);
  await measureFlushes(sql);
  await pack(sql);
  for (const table of ["packed_usage", "packed_usage_hours", "top_usage"])
    await reportRelation(sql, table, `MB of a day in ${table}`);
  await copyDay(sql, last);
  await measureQueries(await queriesUntil(sql, last));
  await measureDrop(sql);
}

/**
 * Fills a day with keys that were created in the last year: of ten keys, four are used in one to three hours, three in nine to eleven, two in twelve,
 * one in all, from 1 to 10,000 times an hour, evenly by the logarithm. Every tenth key has rejections in one to three hours. Units are in the same hours as
 * verifications, in the same range, and independent of their counts.
 */
async function fillDay(sql: Sql, date: string): Promise<void> {
  const units = Array.from({ length: Number(values.limits) }, (_, place) => `, ('units/limit-${place}', 1)`).join("");
  await sql.unsafe(`
    CREATE TABLE bench_keys AS
    SELECT key_id, (row_number() OVER ())::int AS n FROM api_keys
    UNION ALL SELECT overlay(overlay(gen_random_uuid()::text PLACING substr(time, 1, 8) FROM 1) PLACING substr(time, 9) FROM 10 FOR 4)::uuid, n FROM (
      SELECT n, lpad(to_hex((extract(epoch FROM now()) * 1000 - n::float8 / ${keys} * 31536e6)::bigint), 12, '0') AS time
      FROM generate_series(${EXISTING + 1}, ${keys}) AS n
    ) AS made;
    SELECT usage_live_partition('${date}');
    INSERT INTO key_usage (key_id, count, day, outcome, hours)
    SELECT key_id, (SELECT sum(n) FROM unnest(hours) AS n), '${date}', outcome, hours FROM (
      SELECT key_id, outcome, ('[0:23]=' || ARRAY (
        SELECT CASE WHEN CASE
          WHEN outcome = 'EXPIRED' OR n % 10 < 4 THEN hour BETWEEN n % 21 AND n % 21 + n % 3
          WHEN n % 10 < 7 THEN hour BETWEEN n % 13 AND n % 13 + 8 + n % 3
          WHEN n % 10 < 9 THEN hour % 2 = 0
          ELSE true
        END THEN exp(9.21::float8 * random())::bigint END FROM generate_series(0, 23) AS hour
      )::text)::bigint[] AS hours
      FROM bench_keys CROSS JOIN (VALUES ('VALID', 1), ('EXPIRED', 10)${units}) AS outcomes (outcome, one_in)
      WHERE n / 10 % one_in = 0 OFFSET 0
    ) AS made`);
  await sql.unsafe("VACUUM ANALYZE key_usage");
}

async function pack(sql: Sql): Promise<void> {
  const began = performance.now();
  const store = createUsageStore(pool, anyServer);
  const steps: number[] = [];
  for (let more = true; more; ) {
    const start = performance.now();
    more = await store.maintain(400 * DAY);
    steps.push(performance.now() - start);
  }
  report("seconds to pack the day", (performance.now() - began) / 1000);
  report("median and slowest step (ms)", medianAndMax(steps));
  const [counts] = await sql<{ days: number; hours: number }[]>`
    SELECT (SELECT sum(cardinality(counts)) FROM packed_usage)::float8 AS days,
      (SELECT sum((SELECT count(n) FROM unnest(hours) AS n)) FROM packed_usage_hours)::float8 AS hours`;
  report("counts of a day, by day and by hour", [counts?.days ?? 0, counts?.hours ?? 0]);
}

async function copyDay(sql: Sql, last: number): Promise<void> {
  for (let place = 1; place < days; place++) {
    const date = dateOf(last - place * DAY);
    await sql.unsafe(`
      SELECT usage_packed_partitions('${date}');
      INSERT INTO packed_usage SELECT '${date}', first_key_id, key_ids, outcomes, counts FROM packed_usage WHERE day = '${dateOf(last)}';
      INSERT INTO packed_usage_hours SELECT '${date}', first_key_id, hours FROM packed_usage_hours WHERE day = '${dateOf(last)}'`);
  }
  await sql.unsafe("ANALYZE packed_usage, packed_usage_hours, top_usage, api_keys");
}

type Queries = Readonly<Record<string, Omit<UsageQuery, "step"> & Partial<Pick<UsageQuery, "step">>>>;

function day(time: number) {
  return { startTime: new Date(time), endTime: new Date(time + DAY) };
}

async function queriesUntil(sql: Sql, last: number): Promise<Queries> {
  const [key] = await sql<{ keyId: string }[]>`SELECT key_id AS "keyId" FROM api_keys OFFSET ${EXISTING / 2} LIMIT 1`;
  const month = { startTime: new Date(last - 29 * DAY), endTime: new Date(last + DAY) };
  const place = sql`row_number() OVER (ORDER BY digest)`;
  await sql`
    UPDATE api_keys SET actor_id = CASE WHEN place <= 20 THEN 'few' WHEN place <= 220 THEN 'many' ELSE actor_id END
    FROM (SELECT key_id, ${place} AS place FROM api_keys) AS placed WHERE placed.key_id = api_keys.key_id AND place <= 220`;
  const actor = (actorId: string) => ({ ...month, actorId, groupBy: [], step: DAY }) as const;
  return {
    "a key, 30 days by hour": { ...month, keyId: key?.keyId, groupBy: ["outcome"], step: HOUR },
    "an actor with 20 keys, 30 days by day": actor("few"),
    "an actor with 200 keys, 30 days by day": actor("many"),
    "top 100 keys of a day": { ...day(last), groupBy: ["key"] },
    "top 100 keys of a day, one outcome": { ...day(last), groupBy: ["key"], outcome: "VALID" },
    "all keys of a day": { ...day(last), groupBy: [] },
  };
}

async function measureQueries(queries: Queries): Promise<void> {
  const reader = createUsageReader(pool);
  for (const [name, query] of Object.entries(queries)) {
    const limit = query.groupBy.includes("key") ? 100 : 1_000;
    const times = [];
    for (let run = 0; run < 21; run++) {
      const start = performance.now();
      const rows = await reader.query({ step: null, ...query }, { offset: 0, limit }, UNRESTRICTED).catch(String);
      times.push(performance.now() - start);
      if (run === 0) report(`${name}: rows`, rows.length);
    }
    const [cold = 0] = times;
    report(`${name}: first, median and slowest of the next (ms)`, [cold, ...medianAndMax(times.slice(1))]);
  }
}

async function reportRelation(sql: Sql, table: string, name: string): Promise<void> {
  const [size] = await sql<{ bytes: number }[]>`
    SELECT pg_total_relation_size(${table}::regclass)::float8
      + coalesce(sum(pg_total_relation_size(relid)) FILTER (WHERE isleaf), 0)::float8 AS bytes FROM pg_partition_tree(${table}::regclass)`;
  report(name, (size?.bytes ?? 0) / 1e6);
}

/** Two nodes flush the same 50,000 keys at once. */
async function measureFlushes(sql: Sql): Promise<void> {
  const ids = await sql<{ keyId: string }[]>`SELECT key_id AS "keyId" FROM bench_keys ORDER BY random() LIMIT 50000`;
  const store = createUsageStore(pool, anyServer);
  await store.maintain(400 * DAY);
  const flushAll = async (processId: string, from: number) => {
    for (let start = 0; start < ids.length; start += 2_000) {
      const rows = ids.slice(start, start + 2_000).map(({ keyId }) => ({ keyId, outcome: "VALID", count: 3 }) as const);
      await store.flush({ processId, id: from + start, rows });
    }
  };
  const nodes = [randomUUID(), randomUUID()];
  for (let round = 0; round < 6; round++) {
    const start = performance.now();
    await flushAll(nodes[0] ?? "", 1 + round * 1e6);
    report(`flush of ${ids.length} keys (ms)`, performance.now() - start);
  }
  const start = performance.now();
  await Promise.all(nodes.map((node) => flushAll(node, 1e7)));
  report(`two nodes flush the same ${ids.length} keys at once (ms)`, performance.now() - start);
}

async function measureDrop(sql: Sql): Promise<void> {
  for (const table of ["key_usage", "packed_usage_hours"]) {
    const [oldest] = await sql<{ name: string; bytes: number }[]>`
      SELECT relid::regclass::text AS name, pg_total_relation_size(relid)::float8 AS bytes FROM pg_partition_tree(${table}::regclass)
      WHERE isleaf ORDER BY bytes DESC LIMIT 1`;
    const start = performance.now();
    await sql.unsafe(`DROP TABLE ${oldest?.name}`);
    report(
      `drop of a partition of ${table} with ${Math.round((oldest?.bytes ?? 0) / 1e6)} MB (ms)`,
      performance.now() - start,
    );
  }
}

function medianAndMax(times: readonly number[]): [number, number] {
  const sorted = times.toSorted((a, b) => a - b);
  return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0];
}

function dateOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function report(name: string, value: number | readonly number[]): void {
  const numbers = [value].flat().map((one) => Math.round(one * 100) / 100);
  console.info(`${name}: ${numbers.join(", ")}`);
}
