import { afterAll, beforeAll, expect, test } from "vitest";
import { createOpenFeed } from "../../src/postgres/cluster/change-feed.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { earliestTime, latestTime, readTime } from "../../src/postgres/keys/expiry.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const HOUR = 3_600_000;

/** Returns by how many hours the earliest and the latest time differ from the database's, for a server whose clock is so many hours off. */
function differences(own: number): Promise<number[]> {
  return pool.run(async (sql) => {
    const now = Date.now();
    const node = new Date(now + own * HOUR);
    const times = [await readTime(sql, earliestTime(sql, node)), await readTime(sql, latestTime(sql, node))];
    return times.map((time) => Math.round((time.getTime() - now) / HOUR));
  });
}

test("the earliest and the latest time are those of any clock, from the time when its server joins", async () => {
  const seen = [await differences(-1), await differences(1)];
  const open = createOpenFeed(database.url);
  for (const hours of [-5, null, -3, 7]) {
    const session = await open({ onEvent: () => undefined, onLost: () => undefined }, 10_000);
    await session.join({ name: "n", version: "1", ttl: 1_000 }, null, hours && hours * HOUR);
    session.end();
    seen.push(await differences(0));
  }
  expect(seen).toEqual([
    [-1, 0],
    [0, 1],
    // A server whose clock is behind does not make the latest time earlier than the database's.
    [-5, 0],
    [-5, 0],
    [-5, 0],
    [-5, 7],
  ]);
});
