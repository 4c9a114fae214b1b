import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { readPidFile } from "../../src/embedded-postgres/pid-file.ts";
import { describeProcess } from "../../src/embedded-postgres/process.ts";
import { socketUrl } from "../../src/embedded-postgres/socket.ts";
import { eventually, newDataDir, runKeyhold, type Serving, serveForTest } from "../support/keyhold.ts";
import { isAwaited, lockRow } from "../support/locked-row.ts";
import { expectStoppedLast } from "../support/log-end.ts";
import { issue, paths, restClient, verify } from "../support/rest.ts";
import { socketOptions } from "../support/socket-options.ts";

const dataDir = newDataDir();
const environment = { KEYHOLD_DATA_DIR: dataDir.path };

afterAll(() => dataDir.remove());

/** Starts the server on the folder of this file and stops it with the test. */
function start(more: Record<string, string> = {}): Promise<Serving> {
  return serveForTest(dataDir, { ...environment, ...more });
}

/** A client of the embedded database. */
async function databaseOf(): Promise<Sql> {
  const file = await readPidFile(join(dataDir.path, "postgres"));
  const url = socketUrl(file?.socketDir ?? "", "keyhold", "keyhold");
  const sql = postgres(url, { ...socketOptions(url), max: 2, onnotice: () => {} });
  onTestFinished(() => sql.end({ timeout: 0 }));
  return sql;
}

test("SIGTERM and SIGINT complete requests in flight and stop all processes", async () => {
  const server = await start({ KEYHOLD_LOG_LEVEL: "debug" });
  const rest = restClient(server);
  const { keyId, secret } = await issue(rest);
  const sql = await databaseOf();
  const postmaster = await dataDir.postmaster();
  const { release } = await lockRow(sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" });
  await eventually(() => isAwaited(sql));
  // Over a second connection, since the first is in use; it stays open.
  expect((await rest("GET", "/health/ready")).status).toBe(200);

  server.kill("SIGTERM");
  await server.logged("stopping");
  const unready = { status: "unavailable", checks: { accepting: "unavailable" } };
  expect(await rest("GET", "/health/ready")).toMatchObject({ status: 503, body: unready });
  await eventually(async () => (await rest("GET", "/health/alive").catch(() => null)) === null);
  await release();
  expect(await inFlight).toMatchObject({ status: 200, body: { name: "changed" } });
  const ended = await server.ended;
  expect(ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  expectStoppedLast(ended, "request keyhold.v2alpha1.IssuedApiKeysService/UpdateIssuedApiKey");
  expect(await describeProcess(postmaster)).toBeUndefined();
  expect(await dataDir.processes()).toEqual([]);

  const next = await start({ KEYHOLD_LOG_LEVEL: "debug" });
  expect(await verify(restClient(next), secret)).toMatchObject({ is_valid: true, key_id: keyId });
  expect((await restClient(next)("GET", `${paths.issued}/${keyId}`)).body.name).toBe("changed");
  await dataDir.postmaster();
  next.kill("SIGINT");
  const nextEnded = await next.ended;
  expect(nextEnded).toMatchObject({ code: 0, signal: null, stderr: "" });
  expectStoppedLast(nextEnded);
  expect(await dataDir.processes()).toEqual([]);
});

test("a second signal stops a server that waits for a request, and its database", async () => {
  const server = await start();
  const rest = restClient(server);
  const { keyId } = await issue(rest);
  const sql = await databaseOf();
  await dataDir.postmaster();
  // The row is never released, since the driver would write the end of the transaction to a socket that the database has closed.
  await lockRow(sql, keyId);
  const inFlight = rest("PATCH", `${paths.issued}/${keyId}`, { name: "changed" }).catch(() => "cut off");
  await eventually(() => isAwaited(sql));
  server.kill("SIGTERM");
  await server.logged("stopping");
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 1, signal: null });
  expect(await inFlight).toBe("cut off");
  await eventually(async () => (await dataDir.processes()).length === 0);
});

test("a second server on the same folder fails and names the first, which continues", async () => {
  const first = await start();
  const second = await runKeyhold(["serve"], { ...environment, KEYHOLD_PORT: "0" });
  expect(second).toMatchObject({ code: 6, stdout: "" });
  expect(second.stderr).toBe(`keyhold: data directory ${dataDir.path} is in use by process ${first.pid}\n`);
  expect((await restClient(first)("GET", "/health/ready")).status).toBe(200);
});
