import { writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { runKeyhold, startKeyhold } from "../../support/keyhold.ts";
import { startCuttingProxy } from "../../support/tcp-proxy.ts";
import { exists, namesOf, newRows, readLines, useImportCommand, writeRows } from "./import-command.ts";

const { suite, environment, importKeys, stored, blockKey } = useImportCommand();

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
    {
      import_error: {
        row: 501,
        line: 501,
        reason: "INVALID_ARGUMENT",
        message: "actor_id: is required; raw_key: is required without raw_key_hash",
      },
    },
  ]);
  expect(await exists(`${file}.progress`)).toBe(false);
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
