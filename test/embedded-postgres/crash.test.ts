import { expect, test } from "vitest";
import { eventually } from "../support/keyhold.ts";
import { clientOf, isRunning, keep, keptIn, start, startOwner, usedDataDir } from "./support.ts";

test("a killed server is restarted with every acknowledged write", async () => {
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
    // The session of a killed server continues to acknowledge writes until the kernel has ended its process.
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

test("a server that is stopped during its restart stays stopped", async () => {
  const server = await start(await usedDataDir());
  const pid = server.pid;
  process.kill(pid, "SIGKILL");
  await eventually(async () => !(await isRunning(pid)));
  await server.stop();
  expect(await isRunning(server.pid)).toBe(false);
});

test("Ctrl-C in a terminal does not stop the server before its owner", async () => {
  const owner = startOwner(await usedDataDir(), { detached: true });
  const { pid = 0 } = await owner.nextOutput();
  process.kill(-owner.pid, "SIGINT");
  expect(await owner.nextOutput()).toEqual({ last: "written" });
  await owner.ended;
  expect(await isRunning(pid)).toBe(false);
});

test("the server stops when its owner exits without stopping it", async () => {
  const owner = startOwner(await usedDataDir());
  const { pid = 0 } = await owner.nextOutput();
  owner.process.kill("SIGTERM");
  await owner.ended;
  await eventually(async () => !(await isRunning(pid)));
});
