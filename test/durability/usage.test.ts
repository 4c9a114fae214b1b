import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { eventually, type Serving, serve } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { reconnectingClient } from "../support/reconnecting.ts";
import { issue, paths, restClient, verify } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { readUsage, type StoredUsage } from "../support/stored-usage.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** What is stored of the verifications that servers answered before they were killed or stopped. */

let database: TestDatabase;
let proxy: TcpProxy;
let before: StoredUsage;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await TcpProxy.start(database.url);
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});
beforeEach(async () => {
  before = await readUsage(database.url);
});

/** A limit that admits every verification, for the cost of 1. */
const rate_limits = [{ name: "requests", quota: 100_000_000, window: "1h" }];

/** Returns the verifications that were stored in the test. Each must have cost one unit. */
async function stored(): Promise<number> {
  const { all, units } = await readUsage(database.url);
  expect(units - before.units).toBe(all - before.all);
  return all - before.all;
}

async function start(port = "0"): Promise<Serving> {
  const server = await serve({
    KEYHOLD_PORT: port,
    KEYHOLD_DATABASE_URL: proxy.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_LEASE_TTL: "15s",
  });
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  return server;
}

async function stop(server: Serving): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, signal: null });
}

const isReady = async (server: Serving) => (await restClient(server)("GET", "/health/ready")).status === 200;

/** Milliseconds from one flush to the next at most, and what a busy machine adds. */
const INTERVAL = 11_000;
const DELAY = 3_000;

test("a process that is killed loses at most the verifications of its last interval", async () => {
  const seeded = seededBy("KEYHOLD_USAGE_SEED");
  const callers = 4;
  const server = await start();
  const { secret } = await issue(restClient(server), { rate_limits });
  const rest = restClient(server);
  const answered: number[] = [];
  const call = async () => {
    await verify(rest, secret);
    answered.push(performance.now());
    return true as const;
  };
  const load = startLoad(callers, call, 5);
  await sleep(INTERVAL + DELAY + 4_000 + seeded.below(INTERVAL));
  server.kill("SIGKILL");
  const killed = performance.now();
  await server.ended;
  await load.stop();
  const least = answered.filter((time) => time < killed - INTERVAL - DELAY).length;
  const count = await stored();
  console.info(`${count} of ${answered.length} verifications are stored, at least ${least} are expected`);
  expect(least).toBeGreaterThan(100);
  expect(count).toBeGreaterThanOrEqual(least);
  expect(count).toBeLessThanOrEqual(answered.length + callers);
});

test("servers that are stopped one after another lose nothing", async () => {
  const servers = [await start(), await start()];
  const [first] = servers as [Serving];
  const { secret } = await issue(restClient(first), { rate_limits });
  const client = reconnectingClient(servers.map(({ url }) => url));
  const load = startLoad(8, async () => {
    const { body } = await client.post(`${paths.keys}:verify`, { credential: secret });
    return body.is_valid === true || JSON.stringify(body);
  });
  await load.more(100);
  for (const [place, server] of servers.entries()) {
    await stop(server);
    servers[place] = await start(new URL(server.url).port);
    await load.more(100);
  }
  await load.stop();
  client.close();
  await Promise.all(servers.map(stop));
  // A client that a busy machine stops for the drain delay sends a request over a connection that is closed: it has no answer, and is not counted.
  expect(load.failures.filter((failure) => !failure.includes("ECONNRESET"))).toEqual([]);
  expect(await stored()).toBe(load.count() - load.failures.length);
});

test("a server that is stopped while the database is unreachable stores its usage if the database returns within 5 s", async () => {
  const server = await start();
  const rest = restClient(server);
  const { secret } = await issue(rest, { rate_limits });
  for (let times = 0; times < 3; times++) await verify(rest, secret);
  await proxy.down();
  const stopped = stop(server);
  await server.logged("the usage of keys could not be stored yet");
  await proxy.up();
  await stopped;
  expect(await stored()).toBe(3);
});

test("nothing is counted of a batch that fails", async () => {
  const server = await start();
  const rest = restClient(server);
  const { secret } = await issue(rest);
  await verify(rest, secret);
  proxy.freeze();
  const requests = [{ credential: secret }, { credential: "not cached" }];
  const batch = rest("POST", `${paths.keys}:batchVerify`, { requests });
  // It is cached.
  await verify(rest, secret);
  expect((await batch).status).toBe(503);
  proxy.thaw("reset");
  await eventually(() => isReady(server));
  await stop(server);
  expect((await readUsage(database.url)).all - before.all).toBe(2);
});
