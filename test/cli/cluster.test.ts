import { expect, test } from "vitest";
import { useService } from "../support/conformance.ts";
import { type Ended, runKeyhold } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET, startTestServer } from "../support/server.ts";

const suite = useService();

function status(databaseUrl: string = suite.server.databaseUrl): Promise<Ended> {
  const environment = { KEYHOLD_DATABASE_URL: databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  return runKeyhold(["cluster", "status"], environment);
}

const NODE =
  /^\S+:\d+ {2}\d+\.\d+\.\d+\+[\da-f]{12} +live +\d+\.\d s +15\.0 s +(-|\d+\.\d ms) +20\d\d-\d\d-\d\dT[\d:.]+Z$/;

test("cluster status lists the servers, not itself", async () => {
  const second = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
  const { stdout, stderr, code } = await status().finally(() => second.close());
  const [header, ...nodes] = stdout.trimEnd().split("\n");
  expect([code, stderr, header]).toEqual([
    0,
    "",
    expect.stringMatching(/^NAME +VERSION +STATE +LEASE AGE +LEASE +FEED LAG +SINCE$/),
  ]);
  expect(nodes).toEqual([expect.stringMatching(NODE), expect.stringMatching(NODE)]);
});

test("cluster status shows a dead server as gone until its lease is reused", async () => {
  await suite.sql`
    INSERT INTO nodes (lease_id, name, version, ttl_ms, renew_time, feed_lag_ms)
    VALUES (gen_random_uuid(), 'dead:1', '0.0.9', 60000, now() - interval '2 minutes', 1.25)`;
  const { stdout } = await status();
  expect(stdout).toMatch(/^dead:1 +0\.0\.9 +gone +1\d\d\.\d s +60\.0 s +1\.3 ms /m);
});

test("cluster status reports that no server is running", async () => {
  const database = await createTestDatabase();
  const { stdout, stderr, code } = await status(database.url).finally(() => database.drop());
  expect([stdout, stderr, code]).toEqual(["", "no running server uses this database\n", 0]);
});
