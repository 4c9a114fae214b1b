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

async function expectCause(cause: RegExp): Promise<void> {
  const { status, headers, body } = await rest("GET", `${paths.issued}/${UNKNOWN_KEY_ID}`);
  expect([status, body.error.message]).toEqual([503, "the database cannot be reached"]);
  const id = headers.get("x-request-id");
  await eventually(async () => linesOf(id).length >= 2);
  const [fault] = linesOf(id).filter(({ msg }) => msg === "fault");
  expect(fault?.err.message).toMatch(cause);
  expect(fault?.err.stack).toMatch(cause);
  expect(fault?.err).not.toHaveProperty("details");
  expect(fault?.size).toBeLessThan(MAX_LINE);
}

// These tests run in order.
test("a call that fails during an outage logs its cause without protocol messages", async () => {
  await proxy.down();
  await expectCause(/ECONNREFUSED|ECONNRESET|CONNECTION_/);
});

test("a call that the circuit breaker refuses logs its cause without protocol messages", async () => {
  await eventually(async () => (await rest("GET", "/health/ready")).status === 503);
  await eventually(async () => server.log().includes("the database is unreachable"));
  await expectCause(/connect ECONNREFUSED/);
});
