import type { Sql } from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { Pool } from "../../src/postgres/pool.ts";
import { table } from "../support/conformance.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { type Cut, type PostgresProxy, startPostgresProxy } from "../support/postgres-proxy.ts";
import { seededBy } from "../support/seeded.ts";

const UNAVAILABLE = { code: "DATABASE_UNAVAILABLE" };
const CUTS = table<Cut>(["fin", "rst"]);

const seeded = seededBy("KEYHOLD_FAULT_SEED");

async function openPool(maxConnections: number, answerTimeout = 10_000): Promise<{ pool: Pool; proxy: PostgresProxy }> {
  const database = await createTestDatabase();
  const proxy = await startPostgresProxy(database.url);
  const pool = new Pool({ url: proxy.url, maxConnections, statementTimeout: 10_000, prepare: true }, answerTimeout);
  onTestFinished(async () => {
    await pool.close();
    await proxy.close();
    await database.drop();
  });
  return { pool, proxy };
}

const one = (sql: Sql) => sql`SELECT 1 AS one`;
const backend = async (sql: Sql): Promise<number> => (await sql`SELECT pg_backend_pid() AS pid`)[0]?.pid;

test("a connection has one user at a time, and the next in turn after it", async () => {
  const { pool } = await openPool(1);
  const order: string[] = [];
  const users = ["a", "b", "c"].map((name) =>
    pool.run(async (sql) => {
      order.push(`${name} begins`);
      await sql`SELECT pg_sleep(0.01)`;
      order.push(`${name} ends`);
      return backend(sql);
    }),
  );
  expect(new Set(await Promise.all(users)).size).toBe(1);
  expect(order).toEqual(["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]);
});

test("there are never more connections than the pool may have", async () => {
  const { pool, proxy } = await openPool(3);
  const seen = await Promise.all(
    Array.from({ length: 30 }, () => pool.run(async (sql) => [await backend(sql), proxy.connections()])),
  );
  expect(new Set(seen.map(([pid]) => pid)).size).toBe(3);
  expect(Math.max(...seen.map(([, open = 0]) => open))).toBe(3);
});

test("an error of a statement is the caller's, and leaves the connection to the next", async () => {
  const { pool } = await openPool(1);
  const pid = await pool.run(backend);
  await expect(pool.run((sql) => sql`SELECT 1 / 0`)).rejects.toMatchObject({ code: "22012" });
  expect(await pool.run(backend)).toBe(pid);
});

test("of a backend that is killed its user alone hears, and everyone after is answered", async () => {
  const { pool } = await openPool(2);
  for (let round = 0; round < 5; round++) {
    const other = pool.run((sql) => sql`SELECT pg_sleep(0.02)`);
    await expect(pool.run((sql) => sql`SELECT pg_terminate_backend(pg_backend_pid())`)).rejects.toMatchObject(
      UNAVAILABLE,
    );
    await other;
    expect(await Promise.all([pool.run(one), pool.run(one)])).toEqual([[{ one: 1 }], [{ one: 1 }]]);
  }
});

test("a work that is not done in time is given up with its connection, and those who wait are not", async () => {
  const { pool, proxy } = await openPool(1, 2_000);
  const pid = await pool.run(backend);
  const never = pool.run(() => new Promise(() => {}));
  await expect(never).rejects.toMatchObject({ ...UNAVAILABLE, message: "the database did not answer in time" });
  expect(await pool.run(backend)).not.toBe(pid);
  proxy.freeze();
  const frozen = Promise.allSettled(Array.from({ length: 5 }, () => pool.run(one)));
  for (const result of await frozen) expect(result).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
  proxy.thaw();
  expect(await Promise.all(Array.from({ length: 5 }, () => pool.run(one)))).toHaveLength(5);
});

test("a database that comes back is used at once", async () => {
  const { pool, proxy } = await openPool(3);
  await pool.run(one);
  await proxy.down();
  for (let attempt = 0; attempt < 20; attempt++) await expect(pool.run(one)).rejects.toMatchObject(UNAVAILABLE);
  await proxy.up();
  expect(await pool.run(one)).toEqual([{ one: 1 }]);
});

test.each(CUTS)(
  "of connections cut by %s under load each answer is the caller's own, and none is left out",
  async (how) => {
    const { pool, proxy } = await openPool(10, 8_000);
    const counts = { answered: 0, unavailable: 0, late: 0, wrong: 0 };
    let [number, over] = [0, false];
    const ask = async (mine: number) => {
      const answer = await pool
        .run((sql) => sql`SELECT ${mine}::int AS number`)
        .then(
          ([row]) => (row?.number === mine ? "answered" : "wrong"),
          (error) => (error.message.includes("in time") ? "late" : "unavailable"),
        );
      counts[answer]++;
    };
    const callers = Array.from({ length: 20 }, async () => {
      while (!over) await ask(++number);
    });
    for (let round = 0; round < 100; round++) {
      for (let asks = seeded.below(2); asks > 0; asks--) await ask(++number);
      proxy.cutOne(how, seeded.below(10));
      await new Promise(setImmediate);
    }
    over = true;
    await Promise.all(callers);
    expect(counts).toMatchObject({ late: 0, wrong: 0 });
    expect(counts.answered + counts.unavailable).toBe(number);
    expect(counts.answered).toBeGreaterThan(100);
    expect(counts.unavailable).toBeGreaterThan(0);
  },
);
