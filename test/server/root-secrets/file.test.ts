import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished, test } from "vitest";
import { toConfig } from "../../../src/server/config/config.ts";
import { loadRootSecrets } from "../../../src/server/root-secrets/file.ts";
import { table } from "../../support/conformance.ts";

const SECRET = "a-root-secret-0123456789-abcdefghijklmnop";
const RETIRED = "the-root-secret-before-9876543210-zyxwvuts";

const load = (dataDir: string) => loadRootSecrets(toConfig({ KEYHOLD_DATA_DIR: dataDir }));

/** A data directory that does not exist yet. */
async function newDataDir(): Promise<string> {
  const parent = await mkdtemp(join(inject("testDir"), "root-secret-"));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  return join(parent, "data");
}

async function dataDirWith(text: string): Promise<string> {
  const dataDir = await newDataDir();
  await mkdir(dataDir);
  await writeFile(join(dataDir, "root-secret"), text, { mode: 0o600 });
  return dataDir;
}

test("the root secret is created at the first start, readable by the owner only, and used from then on", async () => {
  const dataDir = await newDataDir();
  const made = await load(dataDir);
  expect(made.current.length).toBe(43);
  expect(made.retired).toEqual([]);
  expect((await stat(join(dataDir, "root-secret"))).mode & 0o777).toBe(0o600);
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
  expect(await load(dataDir)).toEqual(made);
  expect(await readdir(dataDir)).toEqual(["root-secret"]);
  expect(await load(await newDataDir())).not.toEqual(made);
});

test("concurrent calls in one process get the same root secret", async () => {
  const dataDir = await newDataDir();
  const loaded = await Promise.all(Array.from({ length: 20 }, () => load(dataDir)));
  expect(new Set(loaded.map(({ current }) => Buffer.from(current).toString())).size).toBe(1);
  expect(await readdir(dataDir)).toEqual(["root-secret"]);
});

test("concurrent processes get the same root secret", async () => {
  const dataDir = await newDataDir();
  const loaded = await Promise.all(Array.from({ length: 6 }, () => loadInProcess(dataDir)));
  expect(new Set(loaded)).toEqual(new Set([(await readFile(join(dataDir, "root-secret"), "utf8")).trim()]));
  expect(await readdir(dataDir)).toEqual(["root-secret"]);
});

async function loadInProcess(dataDir: string): Promise<string> {
  const module = JSON.stringify(join(import.meta.dirname, "../../../src/server/root-secrets/file.ts"));
  const script = `const { loadRootSecrets } = await import(${module});
    const { current } = await loadRootSecrets({ rootSecrets: null, rootSecretFile: null, dataDir: process.argv[1] });
    process.stdout.write(current);`;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script, dataDir]);
  return (await run).stdout;
}

test("the remains of an interrupted first start are ignored", async () => {
  const dataDir = await newDataDir();
  await mkdir(dataDir);
  await writeFile(join(dataDir, `root-secret.${process.pid}`), "half a sec");
  await writeFile(join(dataDir, `root-secret.${randomUUID()}`), "");
  expect((await load(dataDir)).current.length).toBe(43);
});

test("lines after the first are retired root secrets; empty lines and space around them do not count", async () => {
  const { current, retired } = await load(await dataDirWith(`\n  ${SECRET} \r\n\n${RETIRED}\n\n`));
  expect([current, ...retired].map((bytes) => Buffer.from(bytes).toString())).toEqual([SECRET, RETIRED]);
});

const DAMAGED = table([
  ["empty", "", /root-secret: must have at least 32 random characters/],
  ["blank", " \n \n", /root-secret: must have at least 32 random characters/],
  ["cut off", SECRET.slice(0, 20), /root-secret: must have at least 32 random characters/],
  ["overwritten with zeros", "\0".repeat(64), /root-secret: must be random/],
  ["with a truncated retired one", `${SECRET}\nhalf\n`, /root-secret: must have at least 32 random characters/],
] as const);

test.each(DAMAGED)("a file that is %s is rejected by name, and unchanged", async (_, text, message) => {
  const dataDir = await dataDirWith(text);
  const loading = load(dataDir);
  await expect(loading).rejects.toThrow(message);
  await expect(loading).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  if (text.trim() !== "") await expect(loading).rejects.not.toThrow(text.slice(0, 8));
  expect(await readFile(join(dataDir, "root-secret"), "utf8")).toBe(text);
});

test("a folder instead of the file is rejected by name", async () => {
  const dataDir = await newDataDir();
  await mkdir(join(dataDir, "root-secret"), { recursive: true });
  await expect(load(dataDir)).rejects.toThrow(/EISDIR.*root-secret/);
});

test("none is created if a database exists, since it would match none of its keys", async () => {
  const dataDir = await newDataDir();
  await mkdir(join(dataDir, "postgres"), { recursive: true });
  await expect(load(dataDir)).rejects.toThrow(/root-secret: is missing.*restore it/);
  expect(await readdir(dataDir)).toEqual(["postgres"]);
});
