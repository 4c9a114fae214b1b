import { afterAll, beforeAll, expect, test } from "vitest";
import { UNKNOWN_KEY_ID, useService } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { type Json, paths, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

const suite = useService();
let proxy: TcpProxy;
let server: TestServer;

beforeAll(async () => {
  proxy = await TcpProxy.start(suite.server.databaseUrl);
  server = await startTestServer({ KEYHOLD_LEASE_TTL: "1s", KEYHOLD_DATABASE_URL: proxy.url });
});
afterAll(async () => {
  await server.close();
  await proxy.close();
});

const rest = (...request: Parameters<ReturnType<typeof restClient>>) => restClient(server)(...request);

/** Returns the log lines of this request. */
function linesOf(requestId: string | null): Json[] {
  const lines = server.log().trimEnd().split("\n");
  return lines.map((line) => ({ ...JSON.parse(line), size: line.length })).filter(({ reqId }) => reqId === requestId);
}

/** Longer than the two stacks of an error and its cause, much shorter than the descriptors of its details. */
const MAX_LINE = 1_500;

/** Sends calls of every kind, which fail, and returns the lines with a cause. */
async function fail(): Promise<Json[]> {
  const calls = Array.from({ length: 10 }, (_, index) =>
    index % 2 === 0
      ? rest("GET", `${paths.issued}/${UNKNOWN_KEY_ID}`)
      : rest("POST", `${paths.keys}:verify`, { credential: `unknown-${index}` }),
  );
  for (const { status, headers, body } of await Promise.all(calls)) {
    expect([status, body.error.message]).toEqual([503, "the database is unreachable"]);
    await eventually(async () => linesOf(headers.get("x-request-id")).some(({ msg }) => msg === "request"));
  }
  return faults();
}

const faults = (): Json[] => {
  const lines = server.log().trimEnd().split("\n");
  return lines.map((line) => ({ ...JSON.parse(line), size: line.length })).filter(({ msg }) => msg === "fault");
};

// These tests run in order.
test("the first call that fails in an outage logs its cause without protocol messages, and no other call does", async () => {
  await proxy.down();
  const [fault, ...others] = await fail();
  expect(others).toEqual([]);
  expect(fault).toMatchObject({ reqId: expect.any(String), rpc: expect.any(String) });
  expect(fault?.err.message).toMatch(/ECONNREFUSED|ECONNRESET|CONNECTION_/);
  expect(fault?.err.stack).toMatch(/ECONNREFUSED|ECONNRESET|CONNECTION_/);
  expect(fault?.err).not.toHaveProperty("details");
  expect(fault?.size).toBeLessThan(MAX_LINE);
});

test("calls that the circuit breaker refuses are counted", async () => {
  await eventually(async () => (await rest("GET", "/health/ready")).status === 503);
  await eventually(async () => server.log().includes("the database is unreachable"));
  expect(await fail()).toHaveLength(1);
  const counted = () => [...server.log().matchAll(/"failed_calls":(\d+)/g)].map(([, count]) => Number(count));
  const total = () => counted().reduce((sum, count) => sum + count, 0);
  await eventually(async () => total() === 19);
});
