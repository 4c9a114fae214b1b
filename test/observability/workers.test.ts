import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { childrenOf, eventually, type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { probedIn, stateOf } from "../support/process-state.ts";
import { restClient, verify } from "../support/rest.ts";
import { type Scraped, scrape, total } from "../support/scrape.ts";
import { ROOT_SECRET } from "../support/server.ts";

const WORKERS = 2;

let database: TestDatabase;
let server: Serving;
let url: string;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await serve({
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_WORKERS: String(WORKERS),
    KEYHOLD_METRICS_PORT: "0",
    ...probedIn(inject("testDir")),
  });
  url = (await server.logged(`Keyhold is listening on ${server.url}`)).metrics;
});

afterAll(async () => {
  server.kill("SIGTERM");
  await server.ended;
  await database.drop();
});

const workersIn = (samples: readonly Scraped[]) =>
  samples.filter(({ name }) => name === "keyhold_ready").map(({ labels }) => labels.worker);

test("the primary serves the metrics of all workers, labelled by number", async () => {
  const rest = restClient(server);
  for (let count = 0; count < 6; count++) await verify(rest, "abc");
  const samples = await scrape(url);
  expect(workersIn(samples).sort()).toEqual(["1", "2"]);
  expect(total(samples, "keyhold_verdicts_total")).toBe(6);
  expect(total(samples, "keyhold_request_duration_seconds_count")).toBe(6);
  expect(total(samples, "keyhold_workers", { worker: "parent" })).toBe(WORKERS);
  expect(total(samples, "keyhold_workers_configured")).toBe(WORKERS);
  expect(total(samples, "keyhold_worker_restarts_total")).toBe(0);
  const processes = samples.filter(({ name }) => name === "process_start_time_seconds");
  expect(processes.map(({ labels }) => labels.worker).sort()).toEqual(["1", "2", "parent"]);
});

test("a scrape omits a worker that hangs or dies", async () => {
  const [victim = 0] = await childrenOf(server.pid, "worker");
  process.kill(victim, "SIGSTOP");
  const hung = await scrape(url);
  expect(workersIn(hung)).toHaveLength(WORKERS - 1);
  const dying = scrape(url);
  process.kill(victim, "SIGKILL");
  expect(workersIn(await dying)).toHaveLength(WORKERS - 1);
  await eventually(async () => workersIn(await scrape(url)).length === WORKERS);
  const samples = await scrape(url);
  expect(total(samples, "keyhold_worker_restarts_total")).toBe(1);
  expect(total(samples, "keyhold_workers")).toBe(WORKERS);
});

test("scrapes leave nothing in the primary", async () => {
  const retainedAfter = async (scrapes: number) => {
    for (let count = 0; count < scrapes; count++) await scrape(url);
    return (await stateOf(inject("testDir"), server.pid)).retained;
  };
  const before = await retainedAfter(50);
  const perScrape = ((await retainedAfter(100)) - before) / 100;
  // The snapshots of two workers take 75 KB.
  expect(perScrape).toBeLessThan(5_000);
});
