import { afterAll, expect, test } from "vitest";
import { childrenOf, eventually, newDataDir, type Serving, serve } from "../support/keyhold.ts";
import { newLedger } from "../support/ledger.ts";
import { restClient } from "../support/rest.ts";
import { seededBy } from "../support/seeded.ts";
import { CHANGES, startWriters } from "../support/writers.ts";

/** Victims that are killed during the writes. */
const VICTIMS = ["server", "server and watchdog", "postmaster", "a backend", "server and postmaster"] as const;

type Victim = (typeof VICTIMS)[number];

const rounds = Number(process.env.KEYHOLD_FAULT_ROUNDS ?? VICTIMS.length);
const seeded = seededBy("KEYHOLD_FAULT_SEED");
const schedule = Array.from({ length: Math.ceil(rounds / VICTIMS.length) }, () => seeded.shuffled(VICTIMS))
  .flat()
  .slice(0, rounds);

const dataDir = newDataDir();
const ledger = newLedger();
const totals: Record<string, number> = {};
let server: Serving | undefined;

afterAll(async () => {
  server?.kill("SIGKILL");
  await server?.ended;
  await eventually(async () => (await dataDir.processes()).length === 0);
  await dataDir.remove();
});

async function startServer(): Promise<Serving> {
  server = await serve({ KEYHOLD_DATA_DIR: dataDir.path });
  return server;
}

/** Kills, and returns the server that serves afterwards. */
async function kill(victim: Victim, serving: Serving): Promise<Serving> {
  const postmaster = await dataDir.postmaster();
  const pids = await victims(victim, serving.pid, postmaster);
  for (const pid of pids) process.kill(pid, "SIGKILL");
  if (!victim.startsWith("server")) return serving;
  await serving.ended;
  return startServer();
}

async function victims(victim: Victim, pid: number, postmaster: number): Promise<number[]> {
  switch (victim) {
    case "server":
      return [pid];
    case "server and watchdog":
      return [...(await childrenOf(pid, "keyhold-watchdog")), pid];
    case "postmaster":
      return [postmaster];
    case "a backend":
      return (await childrenOf(postmaster, "keyhold keyhold")).slice(0, 1);
    case "server and postmaster":
      return [pid, postmaster];
  }
}

/** Clients write, a victim is killed, and acknowledged changes are compared. Returns the server that serves afterwards. */
async function runRound(victim: Victim, serving: Serving): Promise<Serving> {
  const endures = !victim.startsWith("server");
  const writers = startWriters(restClient(serving), ledger, seeded, 8);
  await writers.acknowledged(40 + seeded.below(80));
  const next = await kill(victim, serving);
  if (endures) await writers.acknowledged(40);
  await writers.stop();
  for (const [change, count] of Object.entries(writers.counts)) totals[change] = (totals[change] ?? 0) + count;
  expect({ victim, unexpected: writers.unexpected }).toEqual({ victim, unexpected: [] });
  if (endures) expect({ victim, broken: writers.broken }).toEqual({ victim, broken: 0 });
  expect(await ledger.differences(restClient(next))).toEqual([]);
  return next;
}

test("every acknowledged change survives a kill of any process", {
  timeout: 30_000 * (rounds + 1),
}, async () => {
  expect(schedule.length).toBeGreaterThan(0);
  let serving = await startServer();
  for (const victim of schedule) serving = await runRound(victim, serving);
  console.info(`killed: ${schedule.join(", ")}; acknowledged: ${JSON.stringify(totals)}`);
  expect(Object.keys(totals).sort()).toEqual([...new Set(CHANGES)].sort());
  serving.kill("SIGTERM");
  expect(await serving.ended).toMatchObject({ code: 0, signal: null });
  expect(await dataDir.processes()).toEqual([]);
});
