import { expect, inject, test } from "vitest";
import { ACTOR } from "../gateways/servers.ts";
import { OF_HEADERS, SERVICE_STATUSES } from "../gateways/situations.ts";
import { startTestServer } from "../support/server.ts";
import { checkProtectedService } from "./protected-service.ts";

/** Runs the checks against a service whose request handler is this JavaScript. Returns the names of the failed checks. */
async function failedChecks(handler: string): Promise<readonly string[]> {
  const server = await startTestServer();
  const program = `require("node:http").createServer(${handler}).listen(process.env.PORT, "127.0.0.1")`;
  const script = `exec "${process.execPath}" -e '${program}'`;
  try {
    const env = { KEYHOLD_URL: server.url, KEYHOLD_TOKEN: "" };
    const checks = await checkProtectedService("service", script, inject("testDir"), { name: "h2c", env });
    return checks.filter(({ holds }) => !holds).map(({ name }) => name);
  } finally {
    await server.close();
  }
}

test("a service that admits everyone fails every check that requires a rejection", async () => {
  const failed = await failedChecks(`(_, response) => response.end(JSON.stringify({ reader: "${ACTOR}" }))`);
  const statuses = OF_HEADERS.map(({ name, status }) => [name, SERVICE_STATUSES[name] ?? status] as const);
  const rejections = statuses
    .filter(([, status]) => status !== 200)
    .map(([name, status]) => `service: ${name}: ${status}`);
  expect(rejections.length).toBeGreaterThan(15);
  expect(failed).toEqual([...rejections, "service: Keyhold is unreachable: 503"]);
});

test("a service that rejects everyone fails every check that requires a response", async () => {
  const failed = await failedChecks(`(_, response) => response.writeHead(503).end()`);
  expect(failed).toContain("service: valid: 200");
  expect(failed).not.toContain("service: Keyhold is unreachable: 503");
});

test("a service that exits is reported with its output", async () => {
  expect(await failedChecks("missing")).toEqual(["service: runs"]);
});
