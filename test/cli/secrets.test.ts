import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { derive, importKey, revoke } from "../support/conformance.ts";
import { type Ended, runKeyhold, type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { issue, type Json, paths, restClient, verify } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

let database: TestDatabase;
let file: string;
let server: Serving;
const rest = (...request: Parameters<ReturnType<typeof restClient>>) => restClient(server)(...request);

beforeAll(async () => {
  database = await createTestDatabase();
  file = join(await mkdtemp(join(inject("testDir"), "secrets-")), "root-secret");
  await writeFile(file, `${ROOT_SECRET}\n`, { mode: 0o640 });
  await chmod(file, 0o640);
  server = await start();
});

afterAll(async () => {
  await stop();
  await database.drop();
});

const environment = () => ({ KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET_FILE: file });
const start = () => serve(environment());
const keyhold = (...args: string[]) => runKeyhold(args, environment());

async function stop(): Promise<void> {
  server.kill("SIGKILL");
  await server.ended;
}

/** The next server starts when the previous lease has ended for every observer, after at most 3 s. */
async function restart(): Promise<void> {
  server.kill("SIGTERM");
  await server.ended;
  server = await start();
}

async function list(): Promise<Json[]> {
  const { stdout, code } = await keyhold("secrets", "list", "--json");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

const secretsIn = async () => (await readFile(file, "utf8")).trimEnd().split("\n");

/** Expects that output contains no secret. */
async function expectNoSecret({ stdout, stderr }: Ended): Promise<void> {
  for (const secret of await secretsIn()) expect(stdout + stderr).not.toContain(secret);
}

// These tests run in order.
describe("rotating the root secret of a running server:", () => {
  const made: string[] = [];
  let staged: string;
  let oldKey: string;

  async function makeOneOfEach(): Promise<string> {
    const { secret, keyId } = await issue(rest);
    const { rawKey } = await importKey(rest);
    made.push(secret, rawKey, (await derive(rest, secret)).token);
    return keyId;
  }

  async function expectAllGood(): Promise<void> {
    for (const credential of made) expect(await verify(rest, credential)).toMatchObject({ is_valid: true });
  }

  test("rotation without --stage is rejected while a server runs", async () => {
    oldKey = await makeOneOfEach();
    const before = await secretsIn();
    expect(await keyhold("secrets", "rotate")).toMatchObject({ code: 1, stderr: expect.stringContaining("--stage") });
    expect(await secretsIn()).toEqual(before);
  });

  test("a staged root secret is accepted, not used", async () => {
    const ended = await keyhold("secrets", "rotate", "--stage");
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    await expectNoSecret(ended);
    expect((await secretsIn())[0]).toBe(ROOT_SECRET);
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    const [current, added] = await list();
    expect(current).toMatchObject({
      state: "current",
      issued: 1,
      imported: 1,
      in_grace: 0,
      signing_keys: 1,
      needed: true,
    });
    expect(added).toMatchObject({ state: "staged", issued: 0, imported: 0, signing_keys: 0, needed: true });
    staged = added?.id;
    const { stdout } = await keyhold("secrets", "list");
    expect(stdout).toMatch(new RegExp(`^${staged} +staged +0 +0 +0 +0 +keep: not used yet`, "m"));
    expect(stdout).not.toContain("dropped");
    expect(ended.stdout).toContain(`keyhold secrets promote ${staged}`);
  });

  test("promotion is rejected until every server has restarted", async () => {
    const refused = await keyhold("secrets", "promote", staged);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("not restarted since") });
    expect(await keyhold("secrets", "promote", "0123456789abcdef")).toMatchObject({ code: 2 });
    expect((await secretsIn())[0]).toBe(ROOT_SECRET);
  });

  test("promotion wraps the signing keys, and a server that has it staged keeps working", async () => {
    await restart();
    const ended = await keyhold("secrets", "promote", staged);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Signing keys wrapped under it: 1.") });
    await expectNoSecret(ended);
    expect((await secretsIn())[1]).toBe(ROOT_SECRET);
    await makeOneOfEach();
    await expectAllGood();
    expect(await keyhold("secrets", "promote", staged)).toMatchObject({ code: 0 });
  });

  test("secrets list shows what depends on the old one, and what is missing without it", async () => {
    await restart();
    await makeOneOfEach();
    await expectAllGood();
    const { secret } = (await rest("POST", `${paths.issued}/${oldKey}:rotate`, { grace_period: "1h" })).body;
    made.push(secret);
    const [current, retired] = await list();
    expect(current).toMatchObject({ id: staged, state: "current", issued: 2, imported: 1, signing_keys: 1 });
    expect(retired).toMatchObject({
      state: "retired",
      issued: 1,
      imported: 2,
      in_grace: 1,
      signing_keys: 0,
      needed: true,
    });
    await expectAllGood();
    const [first = ""] = await secretsIn();
    const alone = await runKeyhold(["secrets", "list"], {
      KEYHOLD_DATABASE_URL: database.url,
      KEYHOLD_ROOT_SECRET: first,
    });
    expect(alone.stdout).toMatch(new RegExp(`^${retired?.id} +missing +1 +2 +1 +0 +missing: `, "m"));
  });

  test("it can be dropped when nothing depends on it", async () => {
    const { body } = await rest("GET", paths.issued);
    const imported = (await rest("GET", paths.imported)).body;
    for (const { key_id } of [...body.issued_api_keys, ...imported.imported_api_keys]) await revoke(rest, key_id);
    expect((await list()).map(({ needed }) => needed)).toEqual([true, false]);
    const { stdout, stderr } = await keyhold("secrets", "list");
    expect(stdout).toMatch(/ retired +0 +0 +0 +0 +can be dropped$/m);
    expect(stderr).toContain("Macaroons");
  });
});

test("without a running server one step is enough", async () => {
  server.kill("SIGTERM");
  await server.ended;
  const before = await secretsIn();
  const ended = await keyhold("secrets", "rotate");
  expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining("Signing keys wrapped under it: 1.") });
  await expectNoSecret(ended);
  expect((await secretsIn()).slice(1)).toEqual(before);
  await writeFile(file, `${(await secretsIn())[0]}\n`);
  server = await start();
});

test("a file that does not match the database is not changed", async () => {
  const other = `${file}-other`;
  const text = `${randomBytes(32).toString("base64")}\n`;
  await writeFile(other, text);
  for (const args of [
    ["secrets", "rotate", "--stage"],
    ["signing-keys", "rotate"],
  ]) {
    const ended = await runKeyhold(args, { ...environment(), KEYHOLD_ROOT_SECRET_FILE: other });
    expect(ended).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be unwrapped") });
  }
  expect(await readFile(other, "utf8")).toBe(text);
});

test("a root secret from the environment is not changed; the error lists the manual steps", async () => {
  const [secret = ""] = await secretsIn();
  const given = { KEYHOLD_DATABASE_URL: database.url, KEYHOLD_ROOT_SECRET: secret };
  const ended = await runKeyhold(["secrets", "rotate"], given);
  expect(ended).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("KEYHOLD_ROOT_SECRETS_RETIRED of every server"),
  });
  expect(ended.stderr).not.toContain(secret);
});
