import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, expect, test } from "vitest";
import { describeProcess, signalProcess } from "../../src/embedded-postgres/process.ts";
import { table } from "../support/conformance.ts";
import { childrenOf, eventually, newDataDir, runKeyhold, type Serving, serveForTest } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { expectStoppedLast } from "../support/log-end.ts";
import { reconnectingClient } from "../support/reconnecting.ts";
import { issue, type Json, paths, restClient, verify } from "../support/rest.ts";

const WORKERS = 2;

const dataDir = newDataDir();
const environment = { KEYHOLD_DATA_DIR: dataDir.path, KEYHOLD_WORKERS: String(WORKERS) };

afterAll(() => dataDir.remove());

/** Starts the workers on the folder of this file and stops them with the test. */
function start(more: Record<string, string> = {}): Promise<Serving> {
  return serveForTest(dataDir, { ...environment, ...more });
}

const workersOf = ({ pid }: Serving) => childrenOf(pid, "keyhold.js worker");

async function oneWorkerOf(server: Serving): Promise<number> {
  const [pid] = await workersOf(server);
  if (pid === undefined) throw new Error("no worker runs");
  return pid;
}

async function readiness(url: string): Promise<Json> {
  return (await restClient({ url })("GET", "/health/ready")).body;
}

/** Waits until another process has replaced `victim`; the primary starts it after the victim's exit. */
async function untilReplaced(victim: number, server: Serving): Promise<void> {
  await eventually(async () => {
    const pids = await workersOf(server);
    return pids.length === WORKERS && !pids.includes(victim);
  });
  await eventually(async () => (await readiness(server.url)).workers.running === WORKERS);
}

async function expectNothingLeft(pids: readonly number[]): Promise<void> {
  expect(await Promise.all(pids.map(describeProcess))).toEqual(pids.map(() => undefined));
  expect(await dataDir.processes()).toEqual([]);
}

const CONNECTIONS = table([
  ["kept connections", true],
  ["a connection for each", false],
] as const);

test.each(CONNECTIONS)("a worker killed under load over %s is replaced, and SIGTERM ends all", async (_, keepAlive) => {
  const server = await start({ KEYHOLD_LOG_LEVEL: "debug" });
  const { secret } = await issue(restClient(server));
  expect(await readiness(server.url)).toMatchObject({ workers: { running: WORKERS, configured: WORKERS } });
  const before = await workersOf(server);
  expect(before).toHaveLength(WORKERS);
  const client = reconnectingClient([server.url], keepAlive);
  const load = startLoad(8, async () => {
    const { body } = await client.post(`${paths.keys}:verify`, { credential: secret });
    return body.is_valid === true || JSON.stringify(body);
  });
  await load.more(200);
  const victim = await oneWorkerOf(server);
  process.kill(victim, "SIGKILL");
  await load.more(200);
  await untilReplaced(victim, server);
  await load.more(200);
  await load.stop();
  client.close();
  console.info(`${load.count()} calls, ${load.failures.length} of them cut off with the worker that was killed`);
  // Each connection of the killed worker loses one call.
  expect(load.failures.length).toBeLessThanOrEqual(8);
  const after = await workersOf(server);
  expect(after).toHaveLength(WORKERS);
  expect(after).not.toContain(victim);
  await dataDir.postmaster();
  server.kill("SIGTERM");
  const ended = await server.ended;
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  expectStoppedLast(ended);
  await expectNothingLeft([...before, ...after]);
});

test.each(CONNECTIONS)(
  "SIGTERM to a worker loses no request over %s, and the worker is replaced",
  async (_, keepAlive) => {
    const server = await start();
    const { secret } = await issue(restClient(server));
    const client = reconnectingClient([server.url], keepAlive);
    const load = startLoad(8, async () => {
      const { body } = await client.post(`${paths.keys}:verify`, { credential: secret });
      return body.is_valid === true || JSON.stringify(body);
    });
    for (const pid of await workersOf(server)) {
      await load.more(100);
      process.kill(pid, "SIGTERM");
      await untilReplaced(pid, server);
    }
    await load.more(100);
    await load.stop();
    client.close();
    console.info(`${load.count()} calls while two workers were replaced`);
    expect(load.failures).toEqual([]);
    expect(client.seen.refused).toBe(0);
  },
);

test("a revocation on one worker takes effect on all, even if they have cached the key", async () => {
  const server = await start();
  const client = reconnectingClient([server.url], false);
  const verdicts = async (credential: string) => {
    const answers = Array.from({ length: 8 }, () => client.post(`${paths.keys}:verify`, { credential }));
    return (await Promise.all(answers)).map(({ body }) => body.is_valid);
  };
  for (let round = 0; round < 10; round++) {
    const { keyId, secret } = await issue(restClient(server));
    expect(await verdicts(secret)).toEqual(Array(8).fill(true));
    const reason = "REVOCATION_REASON_KEY_COMPROMISE";
    expect(await client.post(`${paths.keys}/${keyId}:revoke`, { reason })).toMatchObject({ status: 200 });
    expect(await verdicts(secret)).toEqual(Array(8).fill(false));
  }
  client.close();
});

test("connections passed to a worker that is killed are served by another", async () => {
  const server = await start();
  const stopped = await oneWorkerOf(server);
  process.kill(stopped, "SIGSTOP");
  // In turn, so half of them are for the worker that does not accept them.
  const answers = Array.from({ length: 4 }, () => aliveOverNewConnection(server.url));
  await Promise.race(answers);
  process.kill(stopped, "SIGKILL");
  expect(await Promise.all(answers)).toEqual(answers.map(() => "HTTP/1.1 200 OK"));
});

/** Returns the status line of a response over a new connection. */
function aliveOverNewConnection(url: string): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname });
  socket.write("GET /health/alive HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return new Promise((resolve, reject) => {
    socket.once("data", (bytes) => resolve(bytes.toString().split("\r\n")[0] ?? ""));
    socket.once("close", () => reject(new Error("closed without an answer"))).once("error", reject);
  });
}

const TO_ALL = ["SIGINT", "SIGTERM"] as const;

test.each(TO_ALL)("%s to all processes at once, as a terminal sends it, stops all gracefully", async (signal) => {
  const server = await start();
  const { secret } = await issue(restClient(server));
  const workers = await workersOf(server);
  await dataDir.postmaster();
  for (const pid of [...workers, server.pid]) signalProcess(pid, signal);
  const ended = await server.ended;
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  expect(ended.stdout).not.toContain("restarting");
  await expectNothingLeft(workers);
  expect(await verify(restClient(await start()), secret)).toMatchObject({ is_valid: true });
});

test("a second signal ends workers that wait for a request, and the database", async () => {
  const server = await start();
  const workers = await workersOf(server);
  await dataDir.postmaster();
  const { port, hostname } = new URL(server.url);
  const half = connect({ port: Number(port), host: hostname }).on("error", () => {});
  half.write("GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  await once(half, "data");
  server.kill("SIGTERM");
  await server.logged("stopping");
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 1, signal: null });
  await eventually(async () => (await Promise.all(workers.map(describeProcess))).every((one) => one === undefined));
  await eventually(async () => (await dataDir.processes()).length === 0);
});

test("workers and the database end when the primary is killed", async () => {
  const server = await start();
  const workers = await workersOf(server);
  await dataDir.postmaster();
  server.kill("SIGKILL");
  await server.ended;
  await eventually(async () => (await Promise.all(workers.map(describeProcess))).every((one) => one === undefined));
  await eventually(async () => (await dataDir.processes()).length === 0);
});

test("the primary logs one address, and the workers' log lines have their number", async () => {
  const server = await start();
  server.kill("SIGTERM");
  const lines = (await server.ended).stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.filter(({ url }) => url !== undefined)).toHaveLength(1);
  const opened = lines.filter(({ msg }) => msg === "KEYHOLD_PORT is accepting connections").map(({ worker }) => worker);
  expect(opened.sort()).toEqual([1, 2]);
});

test("workers that cannot start end the command with their error and their exit code", async () => {
  const address = { KEYHOLD_HOST: "192.0.2.1", KEYHOLD_PORT: "0", KEYHOLD_AUTH: "none" };
  const ended = await runKeyhold(["serve", "--workers", "3"], { KEYHOLD_DATA_DIR: dataDir.path, ...address });
  const refused = "keyhold: KEYHOLD_HOST: cannot listen on 192.0.2.1:0 (EADDRNOTAVAIL)\n";
  expect(ended).toMatchObject({ code: 2, stderr: refused });
  expect(await dataDir.processes()).toEqual([]);
  const tls = { KEYHOLD_OIDC_ISSUER: "https://id.example", KEYHOLD_OIDC_AUDIENCE: "keyhold" };
  expect(await runKeyhold(["serve"], { ...environment, ...tls })).toMatchObject({ code: 2, stdout: "" });
});

test("--workers overrides the variable, and 1 starts no primary", async () => {
  const wrong = await runKeyhold(["serve", "--workers", "0"], environment);
  expect(wrong).toMatchObject({
    code: 2,
    stderr: "keyhold: --workers: must be auto or a whole number from 1 to 256\n",
  });
  const alone = await start({ KEYHOLD_WORKERS: "1" });
  expect(await workersOf(alone)).toEqual([]);
  expect(await readiness(alone.url)).toEqual({ status: "ok", checks: { database: "ok", signing_keys: "ok" } });
});
