import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { findUnknownVariables } from "../../../src/server/config/config.ts";
import { table } from "../../support/conformance.ts";
import { newDataDir, runKeyhold, serveForTest } from "../../support/keyhold.ts";
import { createTestDatabase } from "../../support/postgres.ts";
import { ROOT_SECRET } from "../../support/server.ts";

const ignored = (name: string, nearest?: string) =>
  `${name} is not a known variable and is ignored${nearest === undefined ? "" : `; did you mean ${nearest}?`}`;

const CASES: readonly (readonly [name: string, nearest: string | undefined])[] = [
  ["KEYHOLD_DATABSE_URL", "KEYHOLD_DATABASE_URL"],
  ["KEYHOLD_METRIC_PORT", "KEYHOLD_METRICS_PORT"],
  ["KEYHOLD_CACHE_SIZE_MB", "KEYHOLD_CACHE_SIZE"],
  ["KEYHOLD_CORS_ORIGIN", "KEYHOLD_CORS_ORIGINS"],
  ["KEYHOLD_DATABASE_URL_FIL", "KEYHOLD_DATABASE_URL_FILE"],
  ["KEYHOLD_TOKENFILE", "KEYHOLD_TOKEN_FILE"],
  ["keyhold_port", "KEYHOLD_PORT"],
  ["KEYHOLD_COLOUR_OF_THE_SKY", undefined],
];

test.each(table(CASES))("%s is unknown, with the suggestion %s", (name, nearest) => {
  expect(findUnknownVariables({ [name]: "a value" })).toEqual([ignored(name, nearest)]);
});

const FINE: readonly (readonly [string, string])[] = [
  ["KEYHOLD_NOTHING", " "],
  ["PORT", "1"],
  ["KEYHOLD_SERVICE_HOST", "10.0.0.1"],
  ["KEYHOLD_SERVICE_PORT_HTTP", "4420"],
  ["KEYHOLD_POSTGRESQL_PORT_5432_TCP_ADDR", "10.0.0.2"],
];

test.each(table(FINE))("%s=%j causes no warning", (name, value) => {
  expect(findUnknownVariables({ [name]: value })).toEqual([]);
});

test("every variable of docs/configuration.md is known", () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../../docs/configuration.md"), "utf8");
  const names = new Set(page.match(/KEYHOLD_[A-Z_]+/g));
  expect(names.size).toBeGreaterThan(20);
  expect(findUnknownVariables(Object.fromEntries([...names].map((name) => [name, "a value"])))).toEqual([]);
});

test.each(table(["1", "2"]))("a server of %s process(es) warns once", async (workers) => {
  const database = await createTestDatabase();
  const server = await serveForTest(newDataDir(), {
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_WORKERS: workers,
    KEYHOLD_CASHE_SIZE: "a-value-that-may-be-secret",
  });
  server.kill("SIGTERM");
  const { stdout } = await server.ended;
  const lines = stdout.split("\n").filter((line) => line.includes("KEYHOLD_CASHE_SIZE"));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: ignored("KEYHOLD_CASHE_SIZE", "KEYHOLD_CACHE_SIZE") },
  ]);
  expect(stdout).not.toContain("a-value-that-may-be-secret");
  await database.drop();
});

test("the doctor warns, also if another variable is invalid", async () => {
  const { stdout } = await runKeyhold(["doctor", "--json"], { KEYHOLD_PORT: "x", KEYHOLD_HOSTS: "::" });
  expect(JSON.parse(stdout).findings).toMatchObject([
    { check: "configuration", level: "error", message: expect.stringMatching(/^KEYHOLD_PORT: /) },
    { check: "configuration", level: "warning", message: ignored("KEYHOLD_HOSTS", "KEYHOLD_HOST") },
  ]);
});
