import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { table } from "../support/conformance.ts";
import { childrenOf, eventually, type Serving, serve, startKeyhold } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { linesOf } from "../support/log-lines.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { reconnectingClient } from "../support/reconnecting.ts";
import { issue, type Json, paths, restClient } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { ROOT_SECRET } from "../support/server.ts";

const THROW = "SIGUSR2";
const REJECT = "SIGHUP";
const PRELOAD = pathToFileURL(resolve(import.meta.dirname, "../support/throw-on-signal.ts"));

let database: TestDatabase;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = postgres(database.ownerUrl, { max: 2 });
});

afterAll(async () => {
  await sql.end();
  await database.drop();
});

/** A server with the preload, and the URL of its metrics. */
async function start(environment: Record<string, string> = {}): Promise<{ server: Serving; metrics: string }> {
  const server = await serve({
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_METRICS_PORT: "0",
    NODE_OPTIONS: `--import=${PRELOAD.href}`,
    ...environment,
  });
  onTestFinished(async () => {
    server.kill("SIGKILL");
    await server.ended;
  });
  return { server, metrics: (await server.logged(`Keyhold is listening on ${server.url}`)).metrics };
}

const nodes = async () => Number((await sql`SELECT count(*) AS count FROM nodes`)[0]?.count);

const uncaughtLines = (stdout: string): Json[] => linesOf(stdout).filter(({ level }) => level === 60);

test("after an uncaught exception the server completes requests in flight, releases its lease and exits with 1", async () => {
  const { server, metrics } = await start();
  const rest = restClient(server);
  const { keyId } = await issue(rest);
  const { release } = await lockRow(sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" });
  await eventually(() => isAwaited(sql));
  expect((await rest("GET", "/health/ready")).status).toBe(200);
  expect(total(await scrape(metrics), "keyhold_uncaught_total")).toBe(0);

  server.kill(THROW);
  await server.logged("uncaught exception");
  expect((await rest("GET", "/health/ready")).status).toBe(503);
  await eventually(async () => (await rest("GET", "/health/alive").catch(() => null)) === null);
  server.kill(THROW);
  await eventually(async () => total(await scrape(metrics), "keyhold_uncaught_total") === 2);
  await release();
  expect(await inFlight).toMatchObject({ status: 200, body: { name: "changed" } });
  const { stdout, ...ended } = await server.ended;
  expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
  expect(await nodes()).toBe(0);
  const [line, ...others] = uncaughtLines(stdout);
  expect(line).toMatchObject({ err: { type: "TypeError", message: "provoked" }, origin: "uncaughtException" });
  expect(others).toHaveLength(1);
  expect(stdout).not.toContain("kh_v1_not_for_the_log");
});

test("an unhandled rejection ends the server in the same way", async () => {
  const { server } = await start();
  server.kill(REJECT);
  const { stdout, ...ended } = await server.ended;
  expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
  expect(uncaughtLines(stdout)).toMatchObject([{ err: { message: "provoked" }, origin: "unhandledRejection" }]);
  expect(stdout).toContain('"msg":"stopped"');
  expect(await nodes()).toBe(0);
});

test("a second signal ends a server at once that is stopping after an uncaught exception", async () => {
  const { server } = await start();
  const rest = restClient(server);
  const { keyId } = await issue(rest);
  const { release } = await lockRow(sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }).catch(() => "cut off");
  await eventually(() => isAwaited(sql));
  server.kill(THROW);
  await server.logged("stopping");
  server.kill("SIGTERM");
  server.kill("SIGINT");
  expect(await inFlight).toBe("cut off");
  expect(await server.ended).toMatchObject({ code: 1, signal: null });
  await release();
});

const WORKERS = table(["1", "2"]);

test.each(WORKERS)(
  "while a server with %s worker(s) starts, an uncaught exception ends it at once",
  async (workers) => {
    const unresponsive = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void unresponsive.close());
    await once(unresponsive, "listening");
    const connected = once(unresponsive, "connection");
    const { port } = unresponsive.address() as AddressInfo;
    const starting = startKeyhold(["serve", "--workers", workers], {
      KEYHOLD_DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/c`,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_PORT: "0",
      NODE_OPTIONS: `--import=${PRELOAD.href}`,
    });
    await connected;
    starting.kill(THROW);
    const { stdout, ...ended } = await starting.ended;
    expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
    expect(uncaughtLines(stdout)).toHaveLength(1);
  },
);

const VICTIMS = table([
  ["one worker", 1],
  ["all workers at once", 2],
] as const);

test.each(VICTIMS)("when %s fail(s), the port stays open and no call is lost", async (_, count) => {
  const { server, metrics } = await start({ KEYHOLD_WORKERS: "2" });
  const { secret } = await issue(restClient(server));
  const client = reconnectingClient([server.url], false);
  onTestFinished(() => client.close());
  const load = startLoad(8, async () => {
    const { body } = await client.post(`${paths.keys}:verify`, { credential: secret });
    return body.is_valid === true || JSON.stringify(body);
  });
  await load.more(100);
  const before = await childrenOf(server.pid, "keyhold.js worker");
  const victims = before.slice(0, count);
  for (const pid of victims) process.kill(pid, THROW);
  const survivors = before.filter((pid) => !victims.includes(pid));
  await eventually(async () => total(await scrape(metrics), "keyhold_worker_restarts_total") === count);
  await eventually(async () => (await childrenOf(server.pid, "keyhold.js worker")).length === 2);
  expect(await childrenOf(server.pid, "keyhold.js worker")).toEqual(expect.arrayContaining(survivors));
  await load.more(100);
  await load.stop();
  expect(load.failures).toEqual([]);
  expect(client.seen.refused).toBe(0);
  const samples = await scrape(metrics);
  expect(total(samples, "keyhold_uncaught_total")).toBe(count);
  expect(total(samples, "keyhold_uncaught_total", { worker: "parent" })).toBe(0);
  server.kill("SIGTERM");
  const { stdout, ...ended } = await server.ended;
  expect(ended).toEqual({ code: 0, signal: null, stderr: "" });
  expect(uncaughtLines(stdout)).toHaveLength(count);
  expect(await nodes()).toBe(0);
});

test("a single worker completes requests in flight beside its successor", async () => {
  const { server } = await start({ KEYHOLD_WORKERS: "2" });
  const rest = restClient(server);
  const { keyId } = await issue(rest);
  const { release } = await lockRow(sql, keyId);
  // Over separate connections, in turn, so that some wait in each worker.
  const inFlight = Array.from({ length: 4 }, () => rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }));
  await eventually(() => isAwaited(sql));
  const before = await childrenOf(server.pid, "keyhold.js worker");
  for (const pid of before) process.kill(pid, THROW);
  await eventually(async () => (await rest("GET", "/health/ready")).body.workers?.running === 2);
  const now = await childrenOf(server.pid, "keyhold.js worker");
  expect(before.filter((pid) => now.includes(pid))).not.toEqual([]);
  await release();
  for (const answer of inFlight) expect(await answer).toMatchObject({ status: 200, body: { name: "changed" } });
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  expect(await nodes()).toBe(0);
});

test("an uncaught exception in the primary stops all processes gracefully", async () => {
  const { server } = await start({ KEYHOLD_WORKERS: "2" });
  server.kill(THROW);
  const { stdout, ...ended } = await server.ended;
  expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
  expect(uncaughtLines(stdout)).toHaveLength(1);
  expect(stdout).toContain('"msg":"stopped"');
  expect(await nodes()).toBe(0);
});
