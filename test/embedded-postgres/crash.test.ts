import { expect, test } from "vitest";
import { clientOf, eventually, isRunning, keep, keptIn, start, startOwner, usedDataDir } from "./support.ts";

test("a killed server comes back by itself with every acknowledged write", async () => {
  const lines: string[] = [];
  const server = await start(await usedDataDir(), { log: (level, line) => lines.push(`${level} ${line}`) });
  const sql = clientOf(server.url);
  const acknowledged: number[] = [];
  const writeUntil = async (isEnough: () => boolean) => {
    while (!isEnough()) {
      await keep(sql).then(
        (id) => acknowledged.push(id),
        () => undefined,
      );
    }
  };
  for (let kills = 0; kills < 2; kills++) {
    const [{ pid }, { length }] = [server, acknowledged];
    await writeUntil(() => acknowledged.length === length + 20);
    process.kill(pid, "SIGKILL");
    // A session outlives its killed server, and acknowledges any number of writes until the kernel has ended that one.
    await writeUntil(() => server.pid !== pid);
  }
  const { length } = acknowledged;
  await writeUntil(() => acknowledged.length === length + 20);
  await sql.end();
  const kept = new Set(await keptIn(server.url));
  expect(acknowledged.filter((id) => !kept.has(id))).toEqual([]);
  expect(lines.filter((line) => line.startsWith("error PostgreSQL exited unexpectedly: signal SIGKILL"))).toHaveLength(
    2,
  );
});

test("a server told to stop while it comes back stays down", async () => {
  const server = await start(await usedDataDir());
  const pid = server.pid;
  process.kill(pid, "SIGKILL");
  await eventually(async () => !(await isRunning(pid)));
  await server.stop();
  expect(await isRunning(server.pid)).toBe(false);
});

test("the Ctrl-C of a terminal does not take the server from its owner", async () => {
  const owner = startOwner(await usedDataDir(), { detached: true });
  const { pid = 0 } = await owner.nextOutput();
  process.kill(-owner.pid, "SIGINT");
  expect(await owner.nextOutput()).toEqual({ last: "written" });
  await owner.ended;
  expect(await isRunning(pid)).toBe(false);
});

test("the server stops when its owner ends without stopping it", async () => {
  const owner = startOwner(await usedDataDir());
  const { pid = 0 } = await owner.nextOutput();
  owner.process.kill("SIGTERM");
  await owner.ended;
  await eventually(async () => !(await isRunning(pid)));
});
