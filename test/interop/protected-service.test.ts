import { expect, inject, test } from "vitest";
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
  const failed = await failedChecks(`(_, response) => response.end(JSON.stringify({ reader: "reader_read" }))`);
  expect(failed).toEqual([
    "service: no credential: 401",
    "service: an unknown credential: 401",
    "service: a credential that is not ASCII: 401",
    "service: a missing scope: 403",
    "service: two credentials: 400",
    "service: a revoked key: 401",
    "service: Keyhold is unreachable: 503",
  ]);
});

test("a service that rejects everyone fails every check that requires a response", async () => {
  const failed = await failedChecks(`(_, response) => response.writeHead(503).end()`);
  expect(failed).toContain("service: a valid secret: 200");
  expect(failed).not.toContain("service: Keyhold is unreachable: 503");
});

test("a service that exits is reported with its output", async () => {
  expect(await failedChecks("missing")).toEqual(["service: runs"]);
});
