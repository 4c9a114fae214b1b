import { readFile, stat, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { newRawKey } from "../../support/conformance.ts";
import { runKeyhold, startKeyhold } from "../../support/keyhold.ts";
import type { Json } from "../../support/rest.ts";
import {
  exists,
  namesOf,
  newFile,
  newRows,
  readLines,
  type TestRow,
  useImportCommand,
  writeRows,
} from "./import-command.ts";

const { suite, environment, importKeys, stored, blockKey } = useImportCommand();

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
  expect(JSON.parse(end.stdout)).not.toHaveProperty("warned");
});

test("raw keys that a header may not carry are warned of, and short ones need --allow-weak", async () => {
  const [plain, comma] = newRows(2);
  const rows = [plain, { ...comma, raw_key: `${comma?.raw_key},` }, { ...comma, raw_key: "short" }];
  const file = await writeRows(rows as TestRow[]);
  const warnings = [{ line: 2, warnings: ["raw_key: contains a comma, which can cause the header to be split"] }];
  const dry = JSON.parse((await importKeys(file, "--dry-run")).stdout);
  expect(dry).toMatchObject({ valid: 2, failed: 1, warned: 1, warnings });
  const { code, stdout } = await importKeys(file, "--allow-weak");
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ imported: 3, failed: 0, warnings })]);
  const text = await runKeyhold(["keys", "import", file, "--dry-run", "--allow-weak"], environment());
  expect(text.stderr).toContain("line 2: raw_key: contains a comma");
  expect(text.stdout).toMatch(/warned +1\n/);
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
  expect(lines.map(({ import_error: { row, line, reason }, ...cells }) => [row, line, reason, cells])).toEqual([
    [2, 3, "ALREADY_EXISTS", {}],
    [3, 4, "INVALID_ARGUMENT", {}],
  ]);

  const again = await importKeys(file, "--failures-with-keys");
  expect(JSON.parse(again.stdout)).toMatchObject({ rows: 3, imported: 0, existing: 2, failed: 1 });
  expect((await stat(failures)).mode & 0o777).toBe(0o600);
  const [row] = await readLines(failures);
  await writeFile(failures, JSON.stringify({ ...row, ttl: "1h" }));
  expect((await importKeys(failures)).code).toBe(0);
  expect(await stored([good, known, long].flatMap((one) => one ?? []))).toEqual([good?.name, long?.name]);
});

test("a quote that swallows rows loses no key in silence, and one that is never closed fails the file", async () => {
  const [first, second, third, fourth] = newRows(4);
  const line = (row?: TestRow, before = "", after = "") =>
    `${row?.raw_key},${before}${row?.name}${after},${row?.actor_id}\n`;
  const file = newFile("csv");
  const swallowing = line(first, '"') + line(second) + line(third, "", '"') + line(fourth);
  await writeFile(file, `raw_key,name,actor_id\n${swallowing}`);
  const { code, stdout } = await importKeys(file);
  expect([code, JSON.parse(stdout)]).toMatchObject([8, { rows: 2, imported: 1, failed: 1 }]);
  expect(await stored([fourth].flatMap((one) => one ?? []))).toEqual([fourth?.name]);
  const text = await readFile(`${file}.failures.jsonl`, "utf8");
  expect(text).toContain("a quote joins lines 2 to 4 into one row; none of these lines is imported");
  for (const row of [first, second, third]) expect(text).not.toContain(row?.raw_key);

  const neverClosed = `raw_key,name,actor_id\n${line(first)}${line(second, '"')}${line(third)}`;
  await writeFile(file, neverClosed);
  const piped = await runKeyhold(["keys", "import", "-", "--format", "csv"], environment(), { input: neverClosed });
  expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining("line 3 opens a quote")]);
  const unclosed = await importKeys(file);
  expect([unclosed.code, unclosed.stderr]).toEqual([2, expect.stringContaining("line 3 opens a quote")]);
  expect(await exists(`${file}.progress`)).toBe(false);
  expect(await stored([first].flatMap((one) => one ?? []))).toEqual([fourth?.name]);
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
  expect(changed).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("an earlier version of the imported file"),
  });
  expect((await importKeys(newFile("jsonl"))).code).toBe(2);
  const headless = newFile("csv");
  await writeFile(headless, `${newRawKey()},a,b\n`);
  expect((await importKeys(headless)).code).toBe(2);
  expect(await exists(`${headless}.progress`)).toBe(false);
});
