import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/keyhold.ts";
import { importMany, verdictsOf } from "../support/many-keys.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { metricsUrl, scrape, total } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const KEYS = 1_000;
const CHANGED = 40;

let database: TestDatabase;
let proxy: TcpProxy;
let server: TestServer;
/** Another node, which always reaches the database. */
let other: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await TcpProxy.start(database.url);
  other = await startTestServer({ KEYHOLD_DATABASE_URL: database.url });
  server = await startTestServer({ KEYHOLD_DATABASE_URL: proxy.url, KEYHOLD_METRICS_PORT: "0" });
});
afterAll(async () => {
  await Promise.all([server.close(), other.close()]);
  await proxy.close();
  await database.drop();
});

async function readyStatus(): Promise<number> {
  return (await fetch(`${server.url}/health/ready`)).status;
}

test("a server that was cut off from the database loses at most 5 % of its cache, and answers no outdated verdict", async () => {
  const rest = restClient(other);
  const rawKeys = await importMany(rest, KEYS, { actor_id: "billing" });
  await eventually(async () => (await readyStatus()) === 200);
  expect(await verdictsOf(restClient(server), rawKeys)).toEqual({ valid: KEYS });
  const metric = async (name: string, labels = {}) => total(await scrape(metricsUrl(server.log())), name, labels);
  // The events of the imports get their numbers together with that of another change, at the latest.
  const sizes = () => metric("keyhold_feed_changes_total", { kind: "audit_log" });
  const size = await sizes();
  await issue(rest);
  await eventually(async () => (await sizes()) > size);
  await proxy.down();
  await eventually(async () => (await readyStatus()) === 503);
  const some = await rest("GET", `${paths.imported}?page_size=${CHANGED}`);
  for (const { key_id } of some.body.imported_api_keys)
    await rest("POST", `${paths.keys}/${key_id}:revoke`, { reason: "REVOCATION_REASON_KEY_COMPROMISE" });
  await proxy.up();
  await eventually(async () => (await readyStatus()) === 200);
  const misses = () => metric("keyhold_cache_misses_total");
  const before = await misses();
  const verdicts = await verdictsOf(restClient(server), rawKeys);
  expect(verdicts).toEqual({ valid: KEYS - CHANGED, VERIFICATION_ERROR_REVOKED: CHANGED });
  const lost = (await misses()) - before;
  expect(lost).toBeGreaterThanOrEqual(CHANGED);
  expect(lost).toBeLessThanOrEqual(KEYS * 0.05);
});
