import { createServer } from "node:net";
import type { Sql } from "postgres";
import { expect, onTestFinished, test, vi } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import { ConnectBackoff } from "../../src/postgres/connection/connect-backoff.ts";
import { Pool, type PoolOptions } from "../../src/postgres/connection/pool.ts";
import { table } from "../support/conformance.ts";
import { listenLocally } from "../support/listen.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { seededBy } from "../support/seeded.ts";
import { type Cut, TcpProxy } from "../support/tcp-proxy.ts";

const UNAVAILABLE = { code: "DATABASE_UNAVAILABLE" };
const CUTS = table<Cut>(["fin", "rst"]);

const seeded = seededBy("KEYHOLD_FAULT_SEED");

async function openPool(given: number | Partial<PoolOptions>, answerTimeout = 10_000) {
  const database = await createTestDatabase();
  const proxy = await TcpProxy.start(database.url);
  const options = { url: proxy.url, maxConnections: 1, statementTimeout: 10_000, prepare: true, answerTimeout };
  const pool = new Pool({ ...options, ...(typeof given === "number" ? { maxConnections: given } : given) });
  onTestFinished(async () => {
    await pool.close();
    await proxy.close();
    await database.drop();
  });
  return { pool, proxy };
}

const succeeds = (promise: Promise<unknown>) =>
  promise.then(
    () => true,
    () => false,
  );
const one = (sql: Sql) => sql`SELECT 1 AS one`;
const backend = async (sql: Sql): Promise<number> => (await sql`SELECT pg_backend_pid() AS pid`)[0]?.pid;

test("a connection has one user at a time, and then the next in the queue", async () => {
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

test("a connection is used for half an hour, and for an hour at most", async () => {
  const { pool } = await openPool(1);
  const pidAfter = async (minutes: number) => {
    const start = performance.now();
    const clock = vi.spyOn(performance, "now").mockReturnValue(start + minutes * 60_000);
    try {
      return await pool.run(backend);
    } finally {
      clock.mockRestore();
    }
  };
  const first = await pool.run(backend);
  expect(await pidAfter(29)).toBe(first);
  expect(await pidAfter(61)).toBe(first);
  expect(await pool.run(backend)).not.toBe(first);
});

test.each(["KH001", "KH003"])(
  "an exception of a trigger, %s, does not count as a failure of the database",
  async (code) => {
    const { pool } = await openPool(1);
    const raised = pool.run((sql) => sql.unsafe(`DO $$ BEGIN RAISE 'refused' USING ERRCODE = '${code}'; END $$`));
    await expect(raised).rejects.toMatchObject({ code });
    // The first answer of a connection decides whether the next one may be opened.
    expect(await pool.run(one)).toEqual([{ one: 1 }]);
  },
);

test("the pool never exceeds its maximum size", async () => {
  const { pool, proxy } = await openPool(3);
  const seen = await Promise.all(
    Array.from({ length: 30 }, () => pool.run(async (sql) => [await backend(sql), proxy.connections()])),
  );
  expect(new Set(seen.map(([pid]) => pid)).size).toBe(3);
  expect(Math.max(...seen.map(([, open = 0]) => open))).toBe(3);
});

test("a failed statement rejects its caller and leaves the connection usable", async () => {
  const { pool } = await openPool(1);
  const pid = await pool.run(backend);
  await expect(pool.run((sql) => sql`SELECT 1 / 0`)).rejects.toMatchObject({ code: "22012" });
  expect(await pool.run(backend)).toBe(pid);
});

test("a killed backend fails only its user, and later calls succeed", async () => {
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

test("work that exceeds its deadline fails with its connection, and queued work does not", async () => {
  const { pool, proxy } = await openPool(1, 4_000);
  const pid = await pool.run(backend);
  const never = pool.run(() => new Promise(() => {}));
  await expect(never).rejects.toMatchObject({ ...UNAVAILABLE, message: "the database did not respond in time" });
  expect(await pool.run(backend)).not.toBe(pid);
  proxy.freeze();
  const frozen = Promise.allSettled(Array.from({ length: 5 }, () => pool.run(one)));
  for (const result of await frozen) expect(result).toMatchObject({ status: "rejected", reason: UNAVAILABLE });
  proxy.thaw();
  // The queued calls have different deadlines: one of them may have tried to connect, and callers are refused after that.
  while (!(await succeeds(pool.run(one)))) await new Promise(setImmediate);
  expect(await Promise.all(Array.from({ length: 5 }, () => pool.run(one)))).toHaveLength(5);
});

test("work that exceeds its deadline ends the idle connections too", async () => {
  const { pool } = await openPool(3, 4_000);
  const [all, pids] = [Promise.withResolvers<void>(), [] as number[]];
  const inAll = async (sql: Sql) => {
    if (pids.push(await backend(sql)) === 3) all.resolve();
    await all.promise;
  };
  await Promise.all([inAll, inAll, inAll].map((work) => pool.run(work)));
  await expect(pool.run(() => new Promise(() => {}))).rejects.toMatchObject(UNAVAILABLE);
  expect(pids).not.toContain(await pool.run(backend));
});

test.each(CUTS)(
  "a database that ends connections by %s is retried with backoff, and each caller fails at once",
  async (how) => {
    let attempts = 0;
    const refuser = createServer((socket) => {
      attempts++;
      socket.on("error", () => {});
      if (how === "rst") socket.resetAndDestroy();
      else socket.end();
    });
    const port = await listenLocally(refuser);
    const { pool } = await openPool({ url: `postgres://user@127.0.0.1:${port}/none`, maxConnections: 3 });
    const [began, waits] = [performance.now(), [] as number[]];
    while (performance.now() - began < 1_000) {
      const asked = performance.now();
      const calls = Array.from({ length: 10 }, () => pool.run(one));
      for (const result of await Promise.allSettled(calls)) expect(result).toMatchObject({ reason: UNAVAILABLE });
      waits.push(performance.now() - asked);
      await new Promise(setImmediate);
    }
    refuser.close();
    expect(waits.length).toBeGreaterThan(100);
    expect(Math.max(...waits)).toBeLessThan(500);
    // After 0, 25, 75, 175, 375 and 775 ms, with three connections each.
    expect(attempts).toBeLessThanOrEqual(18);
  },
);

test("a recovered database is used within a second", async () => {
  const { pool, proxy } = await openPool(3);
  await pool.run(one);
  await proxy.down();
  for (const away = performance.now(); performance.now() - away < 1_000; ) {
    await expect(pool.run(one)).rejects.toMatchObject(UNAVAILABLE);
    await new Promise(setImmediate);
  }
  await proxy.up();
  const back = performance.now();
  while (!(await succeeds(pool.run(one)))) await new Promise(setImmediate);
  expect(performance.now() - back).toBeLessThan(1_000);
});

test("when one pool reaches the database again, all pools that share its backoff retry at once", async () => {
  const attempts = new ConnectBackoff();
  const { pool, proxy } = await openPool({ maxConnections: 1, attempts });
  attempts.failed(new KeyholdError("DATABASE_UNAVAILABLE", "away"), performance.now() + 60_000);
  await expect(pool.run(one)).rejects.toMatchObject({ message: "away" });
  expect(proxy.connections()).toBe(0);
  attempts.succeeded();
  expect(await pool.run(one)).toEqual([{ one: 1 }]);
});

test("a full queue refuses further calls, and the queued ones succeed", async () => {
  const { pool } = await openPool({ maxConnections: 1, maxWaiting: 2 });
  const held = Promise.withResolvers<void>();
  const first = pool.run(() => held.promise);
  const line = [pool.run(one), pool.run(one)];
  await expect(pool.run(one)).rejects.toMatchObject({ code: "OVERLOADED" });
  held.resolve();
  await first;
  expect(await Promise.all(line)).toEqual([[{ one: 1 }], [{ one: 1 }]]);
  expect(await pool.run(one)).toEqual([{ one: 1 }]);
});

test("abandoning the database rejects all calls at once, and the pool starts again", async () => {
  const { pool, proxy } = await openPool(2);
  const before = await Promise.all([pool.run(backend), pool.run(backend)]);
  proxy.freeze();
  const asked = Promise.allSettled(Array.from({ length: 10 }, () => pool.run(one)));
  const began = performance.now();
  pool.disconnect(new Error("no lease"));
  for (const result of await asked)
    expect(result).toMatchObject({ status: "rejected", reason: { ...UNAVAILABLE, cause: { message: "no lease" } } });
  expect(performance.now() - began).toBeLessThan(1_000);
  proxy.thaw();
  const after = await Promise.all([pool.run(backend), pool.run(backend), pool.run(backend)]);
  for (const pid of after) expect(before).not.toContain(pid);
});

test.each(CUTS)("connections cut by %s under load mix up no results and lose none", async (how) => {
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
});
