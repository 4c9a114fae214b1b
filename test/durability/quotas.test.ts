import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

const DAY = 86_400_000;
const LIMIT = 600;

/** Milliseconds until the first period ends: longer than to use the quota up, also on a slow machine. */
const PERIOD = 40_000;

async function start(databaseUrl: string): Promise<Serving> {
  const server = await serve({ KEYHOLD_DATABASE_URL: databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET });
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  return server;
}

/** Counts answers of verifications, several at a time, until enough were admitted or one was denied. */
async function verifyUntil(server: Serving, credential: string, most: number) {
  const rest = restClient(server);
  const counts = { admitted: 0, unanswered: 0, isDenied: false };
  const run = async () => {
    while (counts.admitted < most && !counts.isDenied) {
      const { status, body } = await rest("POST", `${paths.keys}:verify`, { credential });
      if (status !== 200) counts.unanswered++;
      else if (body.is_valid) counts.admitted++;
      else counts.isDenied = body.error_code === "VERIFICATION_ERROR_QUOTA_EXCEEDED";
    }
  };
  await Promise.all(Array.from({ length: 8 }, run));
  return counts;
}

test("a killed server strands at most 5 % of what is left of a quota, until the period ends", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const [killed, other] = [await start(database.url), await start(database.url)];
  const periodEnd = Date.now() + PERIOD;
  const anchor_time = new Date(periodEnd - DAY).toISOString();
  const quota = { name: "daily", limit: LIMIT, period: "QUOTA_PERIOD_DAY", anchor_time };
  const { secret } = await issue(restClient(other), { quotas: [quota] });

  const before = await verifyUntil(killed, secret, LIMIT / 3);
  killed.kill("SIGKILL");
  await killed.ended;
  const after = await verifyUntil(other, secret, LIMIT);
  expect(after.isDenied).toBe(true);
  const admitted = before.admitted + after.admitted;
  const unanswered = before.unanswered + after.unanswered;
  console.info(`${admitted} of ${LIMIT} admitted, ${unanswered} unanswered`);
  expect(admitted).toBeLessThanOrEqual(LIMIT);
  expect(admitted).toBeGreaterThanOrEqual(LIMIT - 0.05 * (LIMIT - before.admitted) - unanswered);
  expect(Date.now()).toBeLessThan(periodEnd);

  await sleep(periodEnd - Date.now());
  const next = await verifyUntil(other, secret, LIMIT + 1);
  expect(next).toMatchObject({ isDenied: true });
  expect(next.admitted).toBeLessThanOrEqual(LIMIT);
  expect(next.admitted).toBeGreaterThanOrEqual(LIMIT - next.unanswered);
});
