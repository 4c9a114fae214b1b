import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createKeyholdClient, type KeyholdClient, QuotaPeriod } from "../../src/client/index.ts";
import { serve } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** Limits of actors on two servers, each a process of its own, on one database. */

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  return () => database.drop();
});

async function startServer(): Promise<KeyholdClient> {
  const server = await serve({
    ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off", KEYHOLD_AUTH: "none", KEYHOLD_CACHE_SIZE: "16" },
    ...{ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET, KEYHOLD_LEASE_TTL: "15s" },
  });
  onTestFinished(() => {
    server.kill("SIGKILL");
  });
  return createKeyholdClient({ baseUrl: server.url, timeoutMs: 60_000 });
}

async function issue({ issuedApiKeys }: KeyholdClient, actorId: string): Promise<string> {
  const { secret = "" } = await issuedApiKeys.createIssuedApiKey({ name: "n", actorId });
  return secret;
}

const quotaOf = (limit: number) => ({ name: "monthly", limit, period: QuotaPeriod.MONTH });

function setQuotas({ actors }: KeyholdClient, actorId: string, ...limits: readonly number[]) {
  const actor = { actorId, quotas: limits.map(quotaOf) };
  return actors.updateActor({ actor, updateMask: { paths: ["quotas"] } });
}

/** Returns how many of these verifications are accepted, by all servers at once. */
async function accepted(servers: readonly KeyholdClient[], credential: string, count: number): Promise<number> {
  const verdicts = await Promise.all(
    servers.flatMap(({ apiKeys }) => Array.from({ length: count }, () => apiKeys.verifyApiKey({ credential }))),
  );
  return verdicts.filter(({ isValid }) => isValid).length;
}

test("changes of an actor's quota apply on both servers when the call has returned, and neither exceeds it", async () => {
  const [a, b] = [await startServer(), await startServer()];
  const [one, two] = [await issue(a, "team"), await issue(b, "team")];
  // Both servers have cached both keys without a limit.
  for (const secret of [one, two]) expect(await accepted([a, b], secret, 2)).toBe(4);
  await setQuotas(a, "team", 100);
  expect((await accepted([a, b], one, 40)) + (await accepted([a, b], two, 40))).toBe(100);
  expect(await accepted([a, b], one, 1)).toBe(0);
  // Each server has remembered the denial, and may have leased tokens.
  for (const [changing, limit, added] of [[b, 150, 50] as const, [a, 170, 20] as const]) {
    await setQuotas(changing, "team", limit);
    expect(await accepted([a, b], two, 40)).toBe(added);
  }
  await b.actors.adjustActorQuota({ actorId: "team", name: "monthly", delta: -30 });
  expect((await accepted([a], one, 10)) + (await accepted([b], two, 10))).toBe(20);
  await a.actors.adjustActorQuota({ actorId: "team", name: "monthly", delta: 10 });
  expect(await accepted([a, b], one, 10)).toBe(0);
  await setQuotas(b, "team");
  expect(await accepted([a, b], one, 10)).toBe(20);
});
