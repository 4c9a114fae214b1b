import { spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { childrenOf, eventually } from "../support/keyhold.ts";
import { clientOf, isRunning, keep, keptIn, makeDir, start, startOwner, usedDataDir } from "./support.ts";

test("the server stops soon after its owner is killed", async () => {
  const owner = startOwner(await usedDataDir());
  const { pid = 0 } = await owner.nextOutput();
  expect(await isRunning(pid)).toBe(true);
  owner.process.kill("SIGKILL");
  await eventually(async () => !(await isRunning(pid)));
});

test("a server whose owner and watchdog were killed is stopped, and its data is kept", async () => {
  const dataDir = await usedDataDir();
  const owner = startOwner(dataDir);
  const { pid = 0, url = "" } = await owner.nextOutput();
  const sql = clientOf(url);
  const id = await keep(sql);
  const watchdogs = await childrenOf(owner.pid, "keyhold-watchdog");
  expect(watchdogs).toHaveLength(1);
  for (const watchdog of watchdogs) process.kill(watchdog, "SIGKILL");
  owner.process.kill("SIGKILL");
  await owner.ended;
  expect(await sql`SELECT 1 AS alive`).toEqual([{ alive: 1 }]);

  const lines: string[] = [];
  const server = await start(dataDir, { log: (_, line) => lines.push(line) });
  expect(await isRunning(pid)).toBe(false);
  expect(server.pid).not.toBe(pid);
  expect(await keptIn(server.url)).toContain(id);
  expect(lines.join("\n")).toContain(`stopping PostgreSQL process ${pid}`);
  await sql.end({ timeout: 0 });
});

test("a busy backend of a server killed with its owner is terminated, and committed data is kept", async () => {
  const dataDir = await usedDataDir();
  const owner = startOwner(dataDir);
  const { pid = 0, url = "" } = await owner.nextOutput();
  const sql = clientOf(url);
  const id = await keep(sql);
  const [row] = await sql`SELECT pg_backend_pid() AS backend`;
  const busy = sql`SELECT count(*) FROM generate_series(1, 1000000000)`.then(
    () => "done",
    () => "cut off",
  );
  await eventually(async () => (await readFile(`/proc/${row?.backend}/cmdline`, "utf8")).includes("SELECT"));
  owner.process.kill("SIGKILL");
  process.kill(pid, "SIGKILL");
  await owner.ended;

  const server = await start(dataDir);
  expect(await busy).toBe("cut off");
  expect(await isRunning(row?.backend)).toBe(false);
  expect(await keptIn(server.url)).toContain(id);
  await sql.end({ timeout: 0 });
});

test("a pid file of an exited process is ignored", async () => {
  const dataDir = await usedDataDir();
  await writePidFiles(dataDir, (await goneProcess()).pid);
  expect(await keptIn((await start(dataDir)).url)).toContain(1);
});

test("a pid file with the process id of another program is ignored, and that program is not signalled", async () => {
  const dataDir = await usedDataDir();
  const other = spawn("sleep", ["60"]);
  onTestFinished(() => void other.kill("SIGKILL"));
  await writePidFiles(dataDir, other.pid);
  expect(await keptIn((await start(dataDir)).url)).toContain(1);
  expect(await isRunning(other.pid ?? 0)).toBe(true);
});

test("a shell in the folder is not mistaken for a server", async () => {
  const dataDir = await usedDataDir();
  const shell = spawn("sleep", ["60"], { cwd: join(dataDir, "postgres") });
  onTestFinished(() => void shell.kill("SIGKILL"));
  await writePidFiles(dataDir, (await goneProcess()).pid);
  expect(await keptIn((await start(dataDir)).url)).toContain(1);
  expect(await isRunning(shell.pid ?? 0)).toBe(true);
});

test("the remains of an interrupted first start are removed", async () => {
  const dataDir = await makeDir();
  const owner = startOwner(dataDir);
  await eventually(async () => (await drafts(dataDir)).length > 0);
  owner.process.kill("SIGKILL");
  await owner.ended;
  await mkdir(join(dataDir, `postgres.init-${process.pid}`, "base"), { recursive: true });
  expect(await drafts(dataDir)).toHaveLength(2);

  const server = await start(dataDir);
  expect(await drafts(dataDir)).toEqual([]);
  const sql = clientOf(server.url);
  expect(await sql`SELECT current_user AS user`).toEqual([{ user: "keyhold" }]);
  await sql.end();
});

async function drafts(dataDir: string): Promise<string[]> {
  return (await readdir(dataDir)).filter((name) => name.startsWith("postgres.init-"));
}

async function goneProcess(): Promise<ReturnType<typeof spawn>> {
  const child = spawn("true");
  await once(child, "exit");
  return child;
}

/** Writes the pid files that a killed server leaves (PostgreSQL, src/include/utils/pidfile.h). */
async function writePidFiles(dataDir: string, pid = 0): Promise<void> {
  const dir = join(dataDir, "postgres");
  const lines = [pid, dir, 1700000000, 5432, "."];
  const more = ["", "  1234567     65536", "ready   ", ""];
  const { uid, gid } = await stat(dir);
  for (const [name, text] of [
    [".s.PGSQL.5432.lock", `${lines.join("\n")}\n`],
    ["postmaster.pid", [...lines, ...more].join("\n")],
  ] as const) {
    await writeFile(join(dir, name), text, { mode: 0o600 });
    await chown(join(dir, name), uid, gid);
  }
}
