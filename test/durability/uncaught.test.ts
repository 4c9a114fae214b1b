import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { table } from "../support/conformance.ts";
import { eventually, startKeyhold } from "../support/keyhold.ts";
import { listenLocally } from "../support/listen.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { REJECT, THROW, THROWS_ON_SIGNAL, uncaughtLines, useThrowingServers } from "./throwing-server.ts";

const servers = useThrowingServers();
const { start, nodes } = servers;

test("after an uncaught exception the server completes requests in flight, releases its lease and exits with 1", async () => {
  const { server, metrics } = await start();
  const rest = restClient(server);
  const { keyId } = await issue(rest);
  const { release } = await lockRow(servers.sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" });
  await eventually(() => isAwaited(servers.sql));
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
  const { release } = await lockRow(servers.sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }).catch(() => "cut off");
  await eventually(() => isAwaited(servers.sql));
  server.kill(THROW);
  await server.logged("stopping");
  server.kill("SIGTERM");
  server.kill("SIGINT");
  expect(await inFlight).toBe("cut off");
  expect(await server.ended).toMatchObject({ code: 1, signal: null });
  await release();
  // It had no time to release its lease, which the next tests count.
  await servers.sql`DELETE FROM nodes`;
});

const WORKERS = table(["1", "2"]);

test.each(WORKERS)(
  "while a server with %s worker(s) starts, an uncaught exception ends it at once",
  async (workers) => {
    const unresponsive = createServer();
    onTestFinished(() => void unresponsive.close());
    const connected = once(unresponsive, "connection");
    const port = await listenLocally(unresponsive);
    const starting = startKeyhold(["serve", "--workers", workers], {
      KEYHOLD_DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/c`,
      KEYHOLD_ROOT_SECRET: ROOT_SECRET,
      KEYHOLD_PORT: "0",
      ...THROWS_ON_SIGNAL,
    });
    await connected;
    starting.kill(THROW);
    const { stdout, ...ended } = await starting.ended;
    expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
    expect(uncaughtLines(stdout)).toHaveLength(1);
  },
);

test("an uncaught exception in the primary stops all processes gracefully", async () => {
  const { server } = await start({ KEYHOLD_WORKERS: "2" });
  server.kill(THROW);
  const { stdout, ...ended } = await server.ended;
  expect(ended).toEqual({ code: 1, signal: null, stderr: "" });
  expect(uncaughtLines(stdout)).toHaveLength(1);
  expect(stdout).toContain('"msg":"stopped"');
  expect(await nodes()).toBe(0);
});
