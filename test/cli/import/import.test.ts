import { randomUUID } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { newRawKey, useService } from "../../support/conformance.ts";
import { type Ended, eventually, runKeyhold, startKeyhold } from "../../support/keyhold.ts";
import type { Json } from "../../support/rest.ts";
import { startCuttingProxy } from "../../support/tcp-proxy.ts";

const suite = useService();

const newFile = (extension: string) => join(inject("testDir"), `import-${randomUUID()}.${extension}`);

interface TestRow {
  readonly raw_key: string;
  readonly name: string;
  readonly actor_id: string;
}

/** Returns rows of a new actor. */
function newRows(count: number): TestRow[] {
  const actor_id = `import-${randomUUID()}`;
  return Array.from({ length: count }, (_, index) => ({ raw_key: newRawKey(), name: `row ${index + 1}`, actor_id }));
}

async function writeRows(rows: readonly unknown[]): Promise<string> {
  const file = newFile("jsonl");
  await writeFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  return file;
}

const environment = () => ({ KEYHOLD_URL: suite.server.url });
const importKeys = (file: string, ...options: string[]): Promise<Ended> =>
  runKeyhold(["keys", "import", file, "--json", ...options], environment());

/** Returns the names of these rows' keys in the database, sorted. */
async function stored(rows: readonly TestRow[]): Promise<string[]> {
  const found = await suite.sql`SELECT name FROM api_keys WHERE actor_id = ${rows[0]?.actor_id ?? ""}`;
  return found.map(({ name }) => name).sort();
}

const namesOf = (rows: readonly TestRow[]) => rows.map(({ name }) => name).sort();
const exists = (file: string) =>
  stat(file).then(
    () => true,
    () => false,
  );
const readLines = async (file: string): Promise<Json[]> =>
  (await readFile(file, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** Blocks the call with the key of this name until it is released. */
async function blockKey(name: string) {
  const sql = await suite.sql.reserve();
  await sql`CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock_shared(5); RETURN NEW; END $$`;
  await sql.unsafe(`CREATE TRIGGER wait_for_test BEFORE INSERT ON api_keys
    FOR EACH ROW WHEN (NEW.name = '${name}') EXECUTE FUNCTION wait_for_test()`);
  await sql`SELECT pg_advisory_lock(5)`;
  const waiting = async () => {
    const [row] = await sql`SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    return row?.count > 0;
  };
  const release = async () => {
    await sql`SELECT pg_advisory_unlock(5)`;
    await sql`DROP TRIGGER wait_for_test ON api_keys`;
    await sql`DROP FUNCTION wait_for_test`;
    sql.release();
  };
  return { isWaiting: () => eventually(waiting), release };
}

test("large keys are sent in calls that no response limit refuses", async () => {
  const scopes = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(255, "s"));
  const rows = newRows(300).map((row) => ({ ...row, scopes }));
  const before = suite.server.log().length;
  const { code, stdout } = await importKeys(await writeRows(rows));
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ rows: 300, imported: 300, failed: 0 })]);
  const lines = suite.server.log().slice(before).trimEnd().split("\n");
  const calls = lines.map((line): Json => JSON.parse(line)).filter(({ rpc, key_ids }) => rpc && !key_ids);
  expect(calls.map(({ code }) => code ?? "OK")).toEqual(["OK", "OK"]);
});

test("a killed import resumes: each key once, each row counted", async () => {
  const rows = newRows(3000);
  const file = await writeRows(rows);
  const bad = [...rows.slice(0, 500), { name: "bad" }, ...rows.slice(500)];
  await writeFile(file, bad.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const hold = await blockKey("row 1500");
  const killed = startKeyhold(["keys", "import", file, "--concurrency", "2"], environment());
  await hold.isWaiting();
  expect(await exists(`${file}.progress`)).toBe(true);
  killed.kill("SIGKILL");
  expect((await killed.ended).signal).toBe("SIGKILL");
  await hold.release();
  const { code, stdout, stderr } = await importKeys(file);
  expect({ code, stderr, ...JSON.parse(stdout) }).toMatchObject({
    code: 8,
    stderr: "",
    rows: 3001,
    imported: 3000,
    existing: 0,
    failed: 1,
    complete: true,
  });
  expect(await stored(rows)).toEqual(namesOf(rows));
  expect(await readLines(`${file}.failures.jsonl`)).toEqual([
    { import_error: { row: 501, line: 501, reason: "INVALID_ARGUMENT", message: "raw_key: is missing" }, name: "bad" },
  ]);
  expect(await exists(`${file}.progress`)).toBe(false);
});

test("SIGINT stops after the calls in flight, and the same command resumes", async () => {
  const rows = newRows(2500);
  const file = await writeRows(rows);
  const hold = await blockKey("row 1200");
  const interrupted = startKeyhold(["keys", "import", file, "--json", "--concurrency", "1"], environment());
  await hold.isWaiting();
  interrupted.kill("SIGINT");
  await hold.release();
  const { code, stdout } = await interrupted.ended;
  expect([code, JSON.parse(stdout).complete]).toEqual([130, false]);
  expect((await readLines(`${file}.progress`))[0].row).toBe(JSON.parse(stdout).rows);
  const end = await importKeys(file);
  expect({ code: end.code, ...JSON.parse(end.stdout) }).toMatchObject({ code: 0, rows: 2500, imported: 2500 });
  expect(await stored(rows)).toEqual(namesOf(rows));
});

test("a call with a lost response is retried, and its keys count as imported", async () => {
  const rows = newRows(1200);
  const file = await writeRows(rows);
  const proxy = await startCuttingProxy(suite.server.url);
  onTestFinished(() => void proxy.close());
  proxy.cutAt(0);
  const { code, stdout, stderr } = await importKeys(file, "--url", proxy.url, "--concurrency", "1");
  expect({ code, stderr, ...JSON.parse(stdout) }).toMatchObject({ code: 0, stderr: "", imported: 1200, failed: 0 });
  expect(proxy.isCut()).toBe(true);
  expect(await stored(rows)).toEqual(namesOf(rows));
});

test("a finished import can be repeated: its keys exist, no row fails", async () => {
  const rows = newRows(5);
  const file = await writeRows([...rows, rows[0]]);
  const first = await importKeys(file);
  expect([first.code, JSON.parse(first.stdout)]).toMatchObject([0, { rows: 6, imported: 5, existing: 1, failed: 0 }]);
  const again = await importKeys(file);
  expect([again.code, JSON.parse(again.stdout)]).toMatchObject([0, { rows: 6, imported: 0, existing: 6, failed: 0 }]);
  expect(JSON.parse(again.stdout)).not.toHaveProperty("failures_file");
  expect(await exists(`${file}.failures.jsonl`)).toBe(false);
  const { stdout, stderr } = await runKeyhold(["keys", "import", file], environment());
  expect(stdout).toMatch(/^existing +6\nfailed +0\n/m);
  expect(stderr).toContain(
    "6 raw keys already exist and were left unchanged; --no-skip-existing reports them as failures",
  );
  const listed = await importKeys(file, "--no-skip-existing");
  expect([listed.code, JSON.parse(listed.stdout)]).toMatchObject([8, { imported: 0, existing: 0, failed: 6 }]);
  expect(await readLines(`${file}.failures.jsonl`)).toHaveLength(6);
  expect(await stored(rows)).toEqual(namesOf(rows));
});

test("an interrupted import is not resumed on another server", async () => {
  const file = await writeRows(newRows(1));
  const away = await importKeys(file, "--url", "http://127.0.0.1:1", "--retry-for", "1s");
  expect(away.code).toBe(6);
  const elsewhere = await importKeys(file);
  expect(elsewhere).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("http://127.0.0.1:1") });
});

test("failures can be corrected and imported; they contain raw keys only on request", async () => {
  const [good, known, long] = newRows(3);
  const file = newFile("csv");
  const line = (row?: TestRow, ttl = "") => `${row?.raw_key},${row?.name},${row?.actor_id},${ttl}\r\n`;
  await writeFile(file, `raw_key,name,actor_id,ttl\r\n${line(good)}${line(good)}${line(long, "soon")}`);
  expect((await importKeys(file, "--dry-run")).stdout).toMatch(/"valid":2,"failed":1/);
  const failures = `${file}.failures.jsonl`;
  expect((await importKeys(file, "--no-skip-existing")).code).toBe(8);
  const lines = await readLines(failures);
  expect(lines.map(({ name, import_error: { row, line, reason } }) => [name, row, line, reason])).toEqual([
    [good?.name, 2, 3, "ALREADY_EXISTS"],
    [long?.name, 3, 4, "INVALID_ARGUMENT"],
  ]);
  expect(JSON.stringify(lines)).not.toContain(long?.raw_key);

  const again = await importKeys(file, "--failures-with-keys");
  expect(JSON.parse(again.stdout)).toMatchObject({ rows: 3, imported: 0, existing: 2, failed: 1 });
  expect((await stat(failures)).mode & 0o777).toBe(0o600);
  const [row] = await readLines(failures);
  await writeFile(failures, JSON.stringify({ ...row, ttl: "1h" }));
  expect((await importKeys(failures)).code).toBe(0);
  expect(await stored([good, known, long].flatMap((one) => one ?? []))).toEqual([good?.name, long?.name]);
});

test("imports from stdin", async () => {
  const rows = newRows(2);
  const csv = `raw_key,name,actor_id\n${rows.map((row) => Object.values(row).join(",")).join("\n")}`;
  const { code } = await runKeyhold(["keys", "import", "-", "--format", "csv"], environment(), { input: csv });
  expect([code, await stored(rows)]).toEqual([0, namesOf(rows)]);
});

test("reports a changed file, a missing file, an invalid header and an unreachable server", async () => {
  const file = await writeRows(newRows(1));
  const away = await importKeys(file, "--url", "http://127.0.0.1:1", "--retry-for", "1s");
  expect([away.code, JSON.parse(away.stderr).error.status]).toEqual([6, "UNAVAILABLE"]);
  await writeFile(file, "{}\n");
  const changed = await importKeys(file, "--url", "http://127.0.0.1:1");
  expect(changed).toMatchObject({ code: 2, stderr: expect.stringContaining("changed") });
  expect((await importKeys(newFile("jsonl"))).code).toBe(1);
  const headless = newFile("csv");
  await writeFile(headless, `${newRawKey()},a,b\n`);
  expect((await importKeys(headless)).code).toBe(2);
  expect(await exists(`${headless}.progress`)).toBe(false);
});
