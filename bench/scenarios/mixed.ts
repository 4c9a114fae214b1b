import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { buildMixed, type MixedReport, type MixedUrls, runMixed } from "../mixed/load.ts";
import { startNode } from "../subject/cluster.ts";
import { startKeyhold } from "../subject/installation.ts";

const CORES = 2;

/** The required rate on both cores, in requests per second. */
const REQUIRED_RATE = 6_000;

const oneProcess = startWith({});
const withWorkers = startWith({ KEYHOLD_WORKERS: "2" });

/** A second server on the same database only verifies. */
const withVerifier = once(async (fixture): Promise<RunningService> => {
  const program = await buildMixed(fixture);
  const dataDir = join(fixture.dir, randomUUID());
  const { url } = await startKeyhold(fixture, dataDir, {}, "both");
  const { serverUrl } = await startEmbeddedPostgres({ dataDir, log: () => {}, ifRunning: "attach" });
  const { url: verifyUrl } = await startNode(fixture, { dataDir, serverUrl });
  return { program, url, verifyUrl };
});

/** A part of the full rate of one server at which no queue is to form. */
const PART = 0.6;
const partRate = async (fixture: Fixture) => PART * (await unpaced(fixture)).rate;

const unpaced = mixed(oneProcess, () => 0);
const paced = mixed(oneProcess, () => REQUIRED_RATE);
const atPart = mixed(oneProcess, partRate);
const atPartWithVerifier = mixed(withVerifier, partRate);
const unpacedWithWorkers = mixed(withWorkers, () => 0);
const pacedWithWorkers = mixed(withWorkers, () => REQUIRED_RATE);

interface RunningService extends MixedUrls {
  readonly program: string;
}

/** Starts server and PostgreSQL on both cores, which they share with the load. */
function startWith(environment: Readonly<Record<string, string>>): (fixture: Fixture) => Promise<RunningService> {
  return once(async (fixture) => {
    const program = await buildMixed(fixture);
    const { url } = await startKeyhold(fixture, join(fixture.dir, randomUUID()), environment, "both");
    return { program, url };
  });
}

function mixed(
  serve: (fixture: Fixture) => Promise<RunningService>,
  rateOf: (fixture: Fixture) => number | Promise<number>,
): (fixture: Fixture) => Promise<MixedReport> {
  return once(async (fixture) => {
    const { program, ...urls } = await serve(fixture);
    return runMixed(fixture, program, urls, await rateOf(fixture));
  });
}

/** 437 clients with mixed work: at full speed, at the required rate, and at a part of the full rate. */
export const mixedScenarios: readonly Scenario[] = [
  figure("mixed-rate", "requests a second per core", "requests/s", unpaced, ({ rate }) => rate / CORES),
  figure("mixed-p95", "p95 of all requests", "ms", unpaced, ({ p95 }) => p95),
  figure("mixed-p99", "p99 of all requests", "ms", unpaced, ({ p99 }) => p99),
  figure("mixed-verify-p50", "p50 of verify", "ms", unpaced, verifyTimes("p50")),
  figure("mixed-verify-p95", "p95 of verify", "ms", unpaced, verifyTimes("p95")),
  figure("mixed-verify-p99", "p99 of verify", "ms", unpaced, verifyTimes("p99")),
  figure("mixed-paced-rate", "requests a second per core, 6,000 sent", "requests/s", paced, ({ rate }) => rate / CORES),
  figure("mixed-paced-p99", "p99 of all requests, 6,000 a second sent", "ms", paced, ({ p99 }) => p99),
  figure("mixed-paced-verify-p99", "p99 of verify, 6,000 a second sent", "ms", paced, verifyTimes("p99")),
  figure("mixed-part-verify-p99", "p99 of verify, 60 % of the full rate sent", "ms", atPart, verifyTimes("p99")),
  figure(
    "mixed-part-apart-verify-p99",
    "p99 of verify by a server that only verifies, 60 % of the full rate of one server sent",
    "ms",
    atPartWithVerifier,
    verifyTimes("p99"),
  ),
  ...[
    figure(
      "workers-rate",
      "2 workers: requests a second per core",
      "requests/s",
      unpacedWithWorkers,
      ({ rate }) => rate / CORES,
    ),
    figure("workers-verify-p99", "2 workers: p99 of verify", "ms", unpacedWithWorkers, verifyTimes("p99")),
    figure(
      "workers-paced-rate",
      "2 workers: requests a second per core, 6,000 sent",
      "requests/s",
      pacedWithWorkers,
      ({ rate }) => rate / CORES,
    ),
    figure(
      "workers-paced-verify-p99",
      "2 workers: p99 of verify, 6,000 a second sent",
      "ms",
      pacedWithWorkers,
      verifyTimes("p99"),
    ),
  ].map((scenario) => ({ ...scenario, group: "workers" })),
];

function verifyTimes(part: "p50" | "p95" | "p99"): (report: MixedReport) => number {
  return ({ operations }) => {
    const { verify } = operations;
    if (verify === undefined) throw new Error("nothing was verified");
    return verify[part];
  };
}

function figure(
  name: string,
  what: string,
  unit: string,
  run: (fixture: Fixture) => Promise<MixedReport>,
  read: (report: MixedReport) => number,
): Scenario {
  return {
    name,
    group: "mixed",
    work: `mixed run, 437 clients, no error: ${what}`,
    against: "absolute; server, PostgreSQL and load share both cores",
    unit,
    judged: "value",
    needs: ["go"],
    rounds: 1,
    prepare: async (fixture) => ({ subject: async () => read(await run(fixture)), baseline: null }),
  };
}
