import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { Pool } from "../../../src/postgres/connection/pool.ts";
import { createBucketStore } from "../../../src/postgres/limits/bucket-store.ts";
import { openSchema } from "../new-keys.ts";

async function open() {
  const { pool, ...schema } = await openSchema();
  return { ...schema, pool, grant: createBucketStore(pool).grantTokens };
}

const HOUR = 3_600_000;
const bucket = { bucket: "key/1/requests", burst: 10, rate: 1 / HOUR, wanted: 4, owed: 0 };

test("grants what is left, and no more", async () => {
  const { grant } = await open();
  expect(await grant([bucket])).toEqual([{ granted: 4, level: 4 }]);
  const [second, third] = [await grant([bucket]), await grant([bucket])];
  expect([second[0]?.granted, third[0]?.granted]).toEqual([4, 2]);
  expect(third[0]?.level).toBeCloseTo(10, 3);
  expect((await grant([{ ...bucket, bucket: "key/2/requests" }]))[0]?.granted).toBe(4);
});

/** Rows get older by it: the clock of the database steps forwards, or back. */
async function step(pool: Pool, milliseconds: number): Promise<void> {
  const interval = `${milliseconds} ms`;
  await pool.run((sql) => sql`UPDATE limit_buckets SET update_time = update_time - ${interval}::text::interval`);
}

test("charges what is owed, beyond the burst too", async () => {
  const { grant } = await open();
  const [charged] = await grant([{ ...bucket, wanted: 3, owed: 12 }]);
  expect(charged).toEqual({ granted: 0, level: 12 });
  expect((await grant([{ ...bucket, wanted: 1 }]))[0]?.granted).toBe(0);
});

test("drains by the clock of the database, and not when it steps back", async () => {
  const { grant, pool } = await open();
  await grant([{ ...bucket, wanted: 10 }]);
  await step(pool, 3.5 * HOUR);
  expect((await grant([{ ...bucket, wanted: 10 }]))[0]?.granted).toBe(3);
  await step(pool, -100 * HOUR);
  expect((await grant([{ ...bucket, wanted: 10 }]))[0]?.granted).toBe(0);
  await step(pool, 1_000 * HOUR);
  expect((await grant([{ ...bucket, wanted: 100 }]))[0]?.granted).toBe(10);
});

/** Sets the limit of an actor to tokens per hour. */
function setLimit(pool: Pool, limit: { readonly quota: number; readonly burst: number }): Promise<unknown> {
  return setLimits(pool, [{ name: "requests", window: "3600s", ...limit }]);
}

function setLimits(pool: Pool, all: readonly object[]): Promise<unknown> {
  const limits = JSON.stringify(all);
  return pool.run(
    (sql) => sql`
      INSERT INTO actors (actor_id, rate_limits, create_time, update_time) VALUES ('1', ${limits}::text::jsonb, now(), now())
      ON CONFLICT (actor_id) DO UPDATE SET rate_limits = excluded.rate_limits`,
  );
}

test("a changed limit keeps what is used, at most its burst, and drains by the earlier rate until then", async () => {
  const { grant, pool } = await open();
  const shared = { ...bucket, bucket: "actor/1/requests" };
  await grant([{ ...shared, wanted: 10 }]);
  await setLimit(pool, { quota: 1, burst: 30 });
  expect((await grant([{ ...shared, burst: 30, wanted: 100 }]))[0]?.granted).toBe(20);
  await setLimit(pool, { quota: 1, burst: 5 });
  expect((await grant([{ ...shared, burst: 5, wanted: 1 }]))[0]?.level).toBeCloseTo(5, 3);
  await step(pool, 2.5 * HOUR);
  await setLimit(pool, { quota: 4, burst: 5 });
  expect((await grant([{ ...shared, burst: 5, rate: 4 / HOUR, wanted: 5 }]))[0]?.granted).toBe(2);
  await step(pool, 0.9 * HOUR);
  expect((await grant([{ ...shared, burst: 5, rate: 4 / HOUR, wanted: 5 }]))[0]?.granted).toBe(4);
});

test("a statement with an earlier limit is granted by the later one, also if it is the first, and changes nothing", async () => {
  const { grant, pool } = await open();
  const [earlier, later] = [
    { ...bucket, bucket: "actor/1/requests" },
    { ...bucket, bucket: "actor/1/requests", burst: 30 },
  ];
  await setLimit(pool, { quota: 1, burst: 30 });
  expect((await grant([{ ...earlier, wanted: 100 }]))[0]?.granted).toBe(10);
  expect((await grant([{ ...later, wanted: 15 }]))[0]?.granted).toBe(15);
  expect((await grant([{ ...earlier, wanted: 3 }]))[0]?.granted).toBe(3);
  expect((await grant([{ ...later, wanted: 100 }]))[0]?.granted).toBe(2);
  await pool.run((sql) => sql`DELETE FROM actors`);
  await setLimit(pool, { quota: 1, burst: 5 });
  expect((await grant([{ ...later, wanted: 100 }]))[0]).toMatchObject({ granted: 0, level: expect.closeTo(5, 3) });
});

test("a change of one limit does not wait for the bucket of another", async () => {
  const { pool, url } = await open();
  const other = { name: "a", window: "3600s", quota: 1, burst: 1 };
  await setLimits(pool, [other, { ...other, name: "b" }]);
  const locking = postgres(url, { max: 1, onnotice: () => {} });
  onTestFinished(() => locking.end());
  await locking.begin(async (sql) => {
    await sql`SELECT FROM limit_buckets WHERE bucket = 'actor/1/a' FOR UPDATE`;
    await setLimits(pool, [other, { ...other, name: "b", burst: 2 }]);
  });
  const rows = await pool.run((sql) => sql<{ burst: number }[]>`SELECT burst FROM limit_buckets ORDER BY bucket`);
  expect(rows.map(({ burst }) => burst)).toEqual([1, 2]);
});

test("concurrent statements on the same buckets neither deadlock nor grant more than there is", async () => {
  const { grant, url } = await open();
  const other = new Pool({ url, maxConnections: 10, statementTimeout: 10_000, prepare: true });
  onTestFinished(() => other.close());
  const grants = [grant, createBucketStore(other).grantTokens];
  const names = ["a", "b", "c", "d", "e"];
  const requests = (turn: number) =>
    names.map((_, index) => ({ ...bucket, bucket: names[(index + turn) % names.length] ?? "", burst: 100, wanted: 3 }));
  const answers = await Promise.all(
    Array.from({ length: 80 }, async (_, turn) => {
      const asked = requests(turn);
      const granted = (await grants[turn % 2]?.(asked)) ?? [];
      return granted.map((one, index) => ({ bucket: asked[index]?.bucket, granted: one.granted }));
    }),
  );
  for (const name of names) {
    const tokens = answers.flat().filter((one) => one.bucket === name);
    expect(tokens.reduce((sum, { granted }) => sum + granted, 0)).toBe(100);
  }
});

test("a statement that has a bucket twice is rejected, and grants nothing", async () => {
  const { grant } = await open();
  await expect(grant([bucket, bucket])).rejects.toThrow();
  expect((await grant([{ ...bucket, wanted: 10 }]))[0]?.granted).toBe(10);
});

test("deletes only buckets of which nothing is used", async () => {
  const { grant, pool } = await open();
  await grant([
    { ...bucket, bucket: "old and empty", wanted: 1 },
    { ...bucket, bucket: "old", wanted: 3 },
  ]);
  await step(pool, 2 * HOUR);
  await grant([{ ...bucket, bucket: "new and empty", wanted: 0 }]);
  await createBucketStore(pool).removeEmpty();
  const rows = await pool.run((sql) => sql<{ bucket: string }[]>`SELECT bucket FROM limit_buckets ORDER BY bucket`);
  expect(rows.map((row) => row.bucket)).toEqual(["new and empty", "old"]);
});
