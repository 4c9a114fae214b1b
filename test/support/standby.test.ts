import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { startPrimary } from "./standby.ts";

test("a standby streams, synchronously or not, and is promoted when the primary is killed", async () => {
  const dir = await mkdtemp(join(inject("testDir"), "standby-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const primary = await startPrimary(dir);
  onTestFinished(() => primary.close());
  const standby = await primary.addStandby("s1");
  onTestFinished(() => standby.close());
  await primary.configure({ synchronous_standby_names: "FIRST 1 (s1)" });
  const [state] = await primary.admin`SELECT sync_state FROM pg_stat_replication`;
  expect(state).toEqual({ sync_state: "sync" });
  await primary.admin`CREATE TABLE kept AS SELECT 1 AS value`;
  await primary.untilReplayed("s1");
  expect(await standby.admin`SELECT value, pg_is_in_recovery() AS standby FROM kept`).toEqual([
    { value: 1, standby: true },
  ]);

  await standby.pause();
  const waiting = primary.admin`INSERT INTO kept VALUES (2)`.then(() => "committed");
  const late = new Promise((resolve) => setTimeout(resolve, 300, "waits"));
  expect(await Promise.race([waiting, late])).toBe("waits");
  await standby.resume();
  expect(await waiting).toBe("committed");

  await primary.kill();
  await standby.promote();
  await standby.admin`INSERT INTO kept VALUES (3)`;
  expect(await standby.admin`SELECT sum(value)::int AS sum FROM kept`).toEqual([{ sum: 6 }]);
  await primary.start();
  expect(await primary.admin`SELECT sum(value)::int AS sum FROM kept`).toEqual([{ sum: 3 }]);
});
