import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { newRawKey } from "../../support/conformance.ts";
import { eventually, runKeyhold } from "../../support/keyhold.ts";
import { type Json, verify } from "../../support/rest.ts";
import { fileOf, readKeys, readTable } from "./export-queries.ts";
import { newFile, readLines, useImportCommand } from "./import-command.ts";

const { suite, environment, importKeys } = useImportCommand();

const SHA256 = ["--hash-algorithm", "sha256", "--hash-encoding", "hex"];
const sha256 = (rawKey: string) => createHash("sha256").update(rawKey).digest("hex");

const keyhold = (args: readonly string[], input?: string) => runKeyhold(args, environment(), { input });

async function answerOf(args: readonly string[], input?: string): Promise<Json> {
  const { code, stdout, stderr } = await keyhold([...args, "--json"], input);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

async function writeCsv(lines: readonly string[]): Promise<string> {
  const file = newFile("csv");
  await writeFile(file, lines.map((line) => `${line}\n`).join(""));
  return file;
}

test("a repeated import leaves keys unchanged, whether adopted or not", async () => {
  const [used, unused] = [newRawKey(), newRawKey()];
  const file = await writeCsv(["hash,name,actor_id", `${sha256(used)},used,a`, `${sha256(unused)},unused,a`]);
  expect(JSON.parse((await importKeys(file, ...SHA256)).stdout)).toMatchObject({ imported: 2 });
  const { key_id } = await verify(suite.rest, used);
  const [{ key_id: left }] = await answerOf(["keys", "list", "--not-adopted", "--filter", 'name="unused"']);
  await eventually(async () => (await answerOf(["keys", "get", key_id])).adopt_time !== undefined);
  const again = await importKeys(file, ...SHA256);
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { imported: 0, existing: 2, failed: 0 }]);
  expect(await verify(suite.rest, unused)).toMatchObject({ is_valid: true, key_id: left });
});

test("failures have hashes only on request, and a lookup prefix that is taken is a failure", async () => {
  const [{ phc: first = "" } = {}, { phc: second = "" } = {}] = readTable("bcrypt");
  const [rawKey = ""] = readKeys("bcrypt").slice(1);
  const name = randomUUID();
  const header = "phc,lookup_prefix,label,owner";
  const file = await writeCsv([
    header,
    `${second},${rawKey.slice(0, 20)},${name} 1,a`,
    `${first},${rawKey.slice(0, 20)},${name} 2,a`,
    `${first.slice(0, -1)},other-prefix,${name} 3,a`,
  ]);
  const map = ["--map", "phc=phc", "lookup_prefix=lookup_prefix", "name=label", "actor_id=owner"];
  const dry = await importKeys(file, "--dry-run", ...map);
  expect([dry.code, JSON.parse(dry.stdout)]).toMatchObject([8, { rows: 3, valid: 2, failed: 1 }]);
  const { code, stdout } = await importKeys(file, ...map);
  expect([code, JSON.parse(stdout)]).toMatchObject([8, { imported: 1, existing: 0, failed: 2 }]);
  const failures = await readLines(`${file}.failures.jsonl`);
  expect(failures.map(({ import_error: { row, reason, message } }) => [row, reason, message])).toEqual([
    [2, "ALREADY_EXISTS", expect.stringContaining("lookup_prefix")],
    [3, "INVALID_ARGUMENT", expect.stringContaining("raw_key_hash.phc")],
  ]);
  const text = await readFile(`${file}.failures.jsonl`, "utf8");
  for (const secret of [first.slice(7, 40), rawKey.slice(0, 20)]) expect(text).not.toContain(secret);

  await importKeys(file, ...map, "--failures-with-keys");
  const whole = await readFile(`${file}.failures.jsonl`, "utf8");
  expect((await stat(`${file}.failures.jsonl`)).mode & 0o777).toBe(0o600);
  const corrected = newFile("jsonl");
  await writeFile(corrected, whole.replaceAll(/"lookup_prefix":"[^"]*"/g, '"lookup_prefix":"corrected"'));
  const again = await importKeys(corrected, ...map);
  expect(JSON.parse(again.stdout)).toMatchObject({ imported: 1, failed: 1 });
  const repeated = await importKeys(corrected, ...map);
  expect(JSON.parse(repeated.stdout)).toMatchObject({ imported: 0, existing: 1, failed: 1 });
});

test("keys expire unless they are verified before the time that an option or a row states", async () => {
  const [first, second] = [newRawKey(), newRawKey()];
  const name = randomUUID();
  const file = await writeCsv([
    "hash,name,actor_id,adopt_before_time",
    `${sha256(first)},${name},a,`,
    `${sha256(second)},${name},a,2034-01-02T03:04:05Z`,
  ]);
  await importKeys(file, ...SHA256, "--adopt-before-time", "2033-01-02T03:04:05Z");
  const keys = await answerOf(["keys", "list", "--not-adopted", "--filter", `name="${name}"`]);
  expect(keys.map(({ adopt_before_time }: Json) => adopt_before_time).sort()).toEqual([
    "2033-01-02T03:04:05Z",
    "2034-01-02T03:04:05Z",
  ]);
});

test("lists what is not adopted, with other conditions", async () => {
  const [used, unused] = [newRawKey(), newRawKey()];
  const actor = randomUUID();
  const rows = [`${sha256(used)},used,${actor}`, `${sha256(unused)},unused,${actor}`];
  await importKeys(await writeCsv(["hash,name,actor_id", ...rows]), ...SHA256);
  await verify(suite.rest, used);
  const list = ["keys", "list", "--not-adopted", "--actor", actor];
  await eventually(async () => (await answerOf(list)).length === 1);
  expect(await answerOf(list)).toMatchObject([{ name: "unused", hash_algorithm: "HASH_ALGORITHM_SHA256" }]);
  expect(await answerOf([...list, "--status", "revoked"])).toEqual([]);
});

test("imports one key by its hash from stdin", async () => {
  const rawKey = newRawKey();
  const one = ["keys", "import", "--name", "one", "--actor", "a"];
  const key = await answerOf([...one, ...SHA256, "--adopt-before-time", "2033-01-02T03:04:05Z"], `${sha256(rawKey)}\n`);
  expect(key).toMatchObject({ hash_algorithm: "HASH_ALGORITHM_SHA256", adopt_before_time: "2033-01-02T03:04:05Z" });
  expect(await verify(suite.rest, rawKey)).toMatchObject({ is_valid: true, key_id: key.key_id });

  const [row] = readTable("bcrypt").slice(2);
  const [bcryptKey = ""] = readKeys("bcrypt").slice(2);
  const slow = await answerOf([...one, "--phc", "--lookup-prefix", row?.lookup_prefix ?? ""], row?.phc);
  expect(slow).toMatchObject({ hash_algorithm: "HASH_ALGORITHM_BCRYPT" });
  expect(await verify(suite.rest, bcryptKey)).toMatchObject({ is_valid: true, key_id: slow.key_id });

  const pepper = fileOf("sha256.pepper");
  const [peppered = ""] = readKeys("sha256");
  const hash = readTable("sha256")[0]?.key_hash;
  await answerOf([...one, ...SHA256, "--hash-prefix-file", pepper], hash);
  expect(await verify(suite.rest, peppered)).toMatchObject({ is_valid: true });

  const wrong = await keyhold([...one, "--hash-algorithm", "sha256"], sha256(newRawKey()));
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("raw_key_hash.encoding: is required")]);
  expect((await keyhold([...one, "--phc"], row?.phc)).stderr).toContain("lookup_prefix: is required");
});

test("options of one key cannot be combined with a file, and a missing pepper is reported", async () => {
  const file = await writeCsv(["hash,name,actor_id"]);
  const combined = await importKeys(file, ...SHA256, "--phc");
  expect([combined.code, combined.stderr]).toEqual([2, expect.stringContaining("--phc: is for one key")]);
  const missing = await importKeys(file, ...SHA256, "--hash-prefix-file", "/nowhere/pepper");
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("--hash-prefix-file: /nowhere/pepper")]);
  const unstated = await importKeys(file);
  expect([unstated.code, unstated.stderr]).toEqual([2, expect.stringContaining("--hash-algorithm: is required")]);
});

test("creates, lists and deletes the key of an HMAC", async () => {
  const key = randomBytes(32);
  const id = `portal-${randomUUID()}`;
  const created = await answerOf(["hmac-keys", "create", id, "--encoding", "base64"], `${key.toString("base64")}\n`);
  expect(created).toMatchObject({ hmac_key_id: id, not_adopted_count: 0 });
  const wrong = await keyhold(["hmac-keys", "create", `${id}-2`, "--encoding", "hex"], key.toString("base64"));
  expect([wrong.code, wrong.stdout]).toEqual([2, ""]);
  expect(wrong.stderr).toContain("key: is not hexadecimal");
  expect(wrong.stderr).not.toContain(key.toString("base64"));
  const file = newFile("key");
  await writeFile(file, "the text itself");
  await answerOf(["hmac-keys", "create", `${id}-text`, "--encoding", "utf8", "--credential-file", file]);

  const rawKey = newRawKey();
  const value = createHmac("sha512", key).update(rawKey).digest("base64url");
  const rows = await writeCsv(["hash,name,actor_id", `${value},hmac,a`]);
  const how = ["--hash-algorithm", "hmac-sha512", "--hash-encoding", "base64url", "--hmac-key-id", id];
  expect((await importKeys(rows, ...how)).code).toBe(0);
  const { stdout } = await keyhold(["hmac-keys", "list"]);
  expect(stdout).toMatch(/^HMAC KEY ID +CREATED +CREATED BY +NOT ADOPTED$/m);
  expect(stdout).toMatch(new RegExp(`^${id} .* 1$`, "m"));
  const inUse = await keyhold(["hmac-keys", "delete", id]);
  expect([inUse.code, inUse.stdout]).toEqual([5, ""]);

  expect(await verify(suite.rest, rawKey)).toMatchObject({ is_valid: true });
  const isAdopted = async () => {
    const keys: Json[] = await answerOf(["hmac-keys", "list"]);
    return keys.find((one) => one.hmac_key_id === id)?.not_adopted_count === 0;
  };
  await eventually(isAdopted);
  expect((await keyhold(["hmac-keys", "delete", id])).stdout).toMatch(new RegExp(`^hmac_key_id +${id}$`, "m"));
  const left: Json[] = await answerOf(["hmac-keys", "list"]);
  expect(left.map(({ hmac_key_id }) => hmac_key_id)).toEqual([`${id}-text`]);
  expect((await keyhold(["hmac-keys", "delete", id])).code).toBe(3);
});
