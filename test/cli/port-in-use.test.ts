import { pino } from "pino";
import { expect, test } from "vitest";
import { toConfig } from "../../src/server/config/config.ts";
import { startService } from "../../src/server/start.ts";
import { table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { occupyPort } from "../support/occupy-port.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** The ports are checked before the first use of the database. */
const NO_DATABASE = { KEYHOLD_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", KEYHOLD_ROOT_SECRET: ROOT_SECRET };

const serveOn = (environment: Record<string, string>) => runKeyhold(["serve"], { ...NO_DATABASE, ...environment });

/** Two consecutive ports, like those of another server; any program may use the second one. */
async function occupyTwo(): Promise<number> {
  const port = await occupyPort();
  await occupyPort(port + 1).catch(() => undefined);
  return port;
}

test.each(table(["1", "2"]))("a second server with %s worker(s) names the service port", async (workers) => {
  const port = await occupyTwo();
  const ended = await serveOn({ KEYHOLD_PORT: String(port), KEYHOLD_WORKERS: workers });
  expect(ended).toMatchObject({ code: 2, stderr: `keyhold: KEYHOLD_PORT: ${port} is already in use on 127.0.0.1\n` });
});

test("names the metrics port if that is in use", async () => {
  const port = await occupyPort();
  const ended = await serveOn({ KEYHOLD_PORT: String(await freePort()), KEYHOLD_METRICS_PORT: String(port) });
  expect(ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`KEYHOLD_METRICS_PORT: ${port} is already in use`),
  });
});

test("names a port that is taken during startup", async () => {
  const database = await createTestDatabase();
  const port = String(await occupyPort());
  const given = { ...NO_DATABASE, KEYHOLD_DATABASE_URL: database.url, KEYHOLD_PORT: port, KEYHOLD_METRICS_PORT: "off" };
  // The primary checks the ports for its workers.
  const workers = () => ({ running: 1, configured: 1 });
  const starting = startService(toConfig(given), pino({ level: "silent" }), { workers });
  await expect(starting).rejects.toThrow(`KEYHOLD_PORT: ${port} is already in use on 127.0.0.1`);
  await database.drop();
});
