import { expect, onTestFinished, test } from "vitest";
import { table } from "../support/conformance.ts";
import { childrenOf, eventually } from "../support/keyhold.ts";
import { startLoad } from "../support/load.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { reconnectingClient } from "../support/reconnecting.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { THROW, uncaughtLines, useThrowingServers } from "./throwing-server.ts";

const servers = useThrowingServers();
const { start, nodes } = servers;

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
  const { release } = await lockRow(servers.sql, keyId);
  // Over separate connections, in turn, so that some wait in each worker.
  const inFlight = Array.from({ length: 4 }, () => rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }));
  await eventually(() => isAwaited(servers.sql));
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
