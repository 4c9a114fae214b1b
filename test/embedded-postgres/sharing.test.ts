import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { clientOf, isRunning, keptIn, makeDir, start, startOwner, usedDataDir } from "./support.ts";

test("a second owner is rejected with the process id of the first", async () => {
  const dataDir = await usedDataDir();
  const first = startOwner(dataDir);
  const { url = "" } = await first.nextOutput();
  await expect(start(dataDir)).rejects.toThrow(`data directory ${dataDir} is in use by process ${first.pid}`);
  expect(await keptIn(url)).toContain(1);
});

test("a command uses the server of a running owner and does not stop it", async () => {
  const dataDir = await usedDataDir();
  const owner = startOwner(dataDir);
  const { url, pid = 0 } = await owner.nextOutput();
  const command = await start(dataDir, { ifRunning: "attach" });
  expect(command).toMatchObject({ url, pid });
  expect(await keptIn(command.url)).toContain(1);
  await command.stop();
  expect(await isRunning(pid)).toBe(true);
});

test("a command without an owner starts a server and stops it", async () => {
  const command = await start(await usedDataDir(), { ifRunning: "attach" });
  await command.stop();
  expect(await isRunning(command.pid)).toBe(false);
});

test("one of two concurrent owners of a new folder succeeds", async () => {
  const dataDir = await makeDir();
  const owners = [startOwner(dataDir), startOwner(dataDir)] as const;
  const output = await Promise.all(owners.map((owner) => owner.nextOutput()));
  const winner = output[0]?.error === undefined ? 0 : 1;
  expect(output[winner]?.error).toBeUndefined();
  expect(output[1 - winner]?.error).toContain(`is in use by process ${owners[winner].pid}`);
  const sql = clientOf(output[winner]?.url ?? "");
  expect(await sql`SELECT current_user AS user`).toEqual([{ user: "keyhold" }]);
  await sql.end();
});

test("a folder in use by a server of another container, whose process is invisible, is rejected", async () => {
  const dataDir = await usedDataDir();
  const server = await start(dataDir);
  const file = join(dataDir, "postgres", "postmaster.pid");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace(/^\d+/, "4194304"));
  for (const ifRunning of ["reject", "attach"] as const)
    await expect(start(dataDir, { ifRunning })).rejects.toThrow("in use by PostgreSQL process 4194304");
  await writeFile(file, text);
  expect(await keptIn(server.url)).toContain(1);
});
