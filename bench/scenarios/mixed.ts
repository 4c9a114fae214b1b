import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { buildMixed, type MixedReport, runMixed } from "../mixed/load.ts";
import { startKeyhold } from "../subject/installation.ts";

const CORES = 2;

/** What is asked of it at the least: requests a second of both cores. */
const REACH = 6_000;

const alone = servedBy({});
const byWorkers = servedBy({ KEYHOLD_WORKERS: "2" });

const flatOut = mixed(alone, 0);
const paced = mixed(alone, REACH);
const flatOutByWorkers = mixed(byWorkers, 0);
const pacedByWorkers = mixed(byWorkers, REACH);

interface Served {
  readonly program: string;
  readonly url: string;
}

/** Server, PostgreSQL and load on both cores, wherever the system puts them. */
function servedBy(environment: Readonly<Record<string, string>>): (stage: Stage) => Promise<Served> {
  return once(async (stage) => {
    const program = await buildMixed(stage);
    const { url } = await startKeyhold(stage, join(stage.dir, randomUUID()), environment, "both");
    return { program, url };
  });
}

function mixed(serve: (stage: Stage) => Promise<Served>, rate: number): (stage: Stage) => Promise<MixedReport> {
  return once(async (stage) => {
    const { program, url } = await serve(stage);
    return runMixed(stage, program, url, rate);
  });
}

/** 437 clients at mixed work, once as fast as they are answered and once at the rate that is asked for. */
export const mixedScenarios: readonly Scenario[] = [
  figure("mixed-rate", "requests a second per core", "requests/s", flatOut, ({ rate }) => rate / CORES),
  figure("mixed-p95", "p95 of all requests", "ms", flatOut, ({ p95 }) => p95),
  figure("mixed-p99", "p99 of all requests", "ms", flatOut, ({ p99 }) => p99),
  figure("mixed-verify-p50", "p50 of verify", "ms", flatOut, verifyTimes("p50")),
  figure("mixed-verify-p95", "p95 of verify", "ms", flatOut, verifyTimes("p95")),
  figure("mixed-verify-p99", "p99 of verify", "ms", flatOut, verifyTimes("p99")),
  figure("mixed-paced-rate", "requests a second per core, 6,000 sent", "requests/s", paced, ({ rate }) => rate / CORES),
  figure("mixed-paced-p99", "p99 of all requests, 6,000 a second sent", "ms", paced, ({ p99 }) => p99),
  figure("mixed-paced-verify-p99", "p99 of verify, 6,000 a second sent", "ms", paced, verifyTimes("p99")),
  ...[
    figure(
      "workers-rate",
      "2 workers: requests a second per core",
      "requests/s",
      flatOutByWorkers,
      ({ rate }) => rate / CORES,
    ),
    figure("workers-verify-p99", "2 workers: p99 of verify", "ms", flatOutByWorkers, verifyTimes("p99")),
    figure(
      "workers-paced-rate",
      "2 workers: requests a second per core, 6,000 sent",
      "requests/s",
      pacedByWorkers,
      ({ rate }) => rate / CORES,
    ),
    figure(
      "workers-paced-verify-p99",
      "2 workers: p99 of verify, 6,000 a second sent",
      "ms",
      pacedByWorkers,
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
  run: (stage: Stage) => Promise<MixedReport>,
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
    prepare: async (stage) => ({ subject: async () => read(await run(stage)), baseline: null }),
  };
}
