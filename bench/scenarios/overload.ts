import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Fixture, once } from "../harness/fixture.ts";
import { residentMemory } from "../harness/memory.ts";
import type { Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { buildOverload, type OverloadReport, runOverload } from "../overload/load.ts";
import { PATHS } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { warmService } from "./warm-service.ts";

/** The offered load relative to the measured capacity. */
const LOAD_FACTOR = 2;

const SECONDS = 20;

/** Milliseconds. */
const SAMPLE_INTERVAL = 250;

interface Overload extends OverloadReport {
  /** Requests per second that were served before, when clients waited for responses. */
  readonly capacity: number;
  /** Maximum resident memory in the second half of the run, divided by that in the first half. */
  readonly growth: number;
}

interface Work {
  readonly path: string;
  readonly noCache: boolean;
  readonly bodies: (fixture: Fixture) => Promise<readonly unknown[]>;
}

const verify = once((fixture) =>
  overload(fixture, {
    path: PATHS.verify,
    noCache: true,
    bodies: async () => (await warmService(fixture)).secrets.map((credential) => ({ credential })),
  }),
);
const create = once((fixture) => overload(fixture, { path: PATHS.issued, noCache: false, bodies: async () => [KEY] }));

async function overload(fixture: Fixture, { path, noCache, bodies: make }: Work): Promise<Overload> {
  const program = await buildOverload(fixture);
  const { url, installation } = await warmService(fixture);
  const bodies = await make(fixture);
  const capacity = await httpLoad(fixture, {
    url: url + path,
    headers: { ...JSON_HEADERS, ...(noCache ? { "cache-control": "no-cache" } : {}) },
    bodies: await jsonBodies(fixture, bodies),
    connections: CONNECTIONS,
  })();
  const file = join(fixture.dir, `overload${path.replaceAll("/", "-")}`);
  await writeFile(file, bodies.map((body) => JSON.stringify(body)).join("\n"));
  const memory = watchMemory(installation.server.pid);
  const options = { url, path, noCache, bodies: file, rate: LOAD_FACTOR * capacity, seconds: SECONDS };
  const report = await runOverload(fixture, program, options).finally(memory.stop);
  return { ...report, capacity, growth: growthOf(memory.samples) };
}

function watchMemory(pid: number) {
  const samples: number[] = [];
  const timer = setInterval(() => void residentMemory(pid).then((size) => samples.push(size)), SAMPLE_INTERVAL);
  return { samples, stop: () => clearInterval(timer) };
}

function growthOf(samples: readonly number[]): number {
  const half = samples.length >> 1;
  return Math.max(...samples.slice(half)) / Math.max(...samples.slice(0, half));
}

/**
 * Twice the load that the service can process, for 20 s: every rejection is 503 with `Retry-After`, and health checks return 200
 * throughout.
 */
export const overloadScenarios: readonly Scenario[] = [
  ...scenariosOf("verify with no-cache", "overload-verify", verify),
  ...scenariosOf("create", "overload-create", create),
];

function scenariosOf(what: string, name: string, run: (fixture: Fixture) => Promise<Overload>): Scenario[] {
  const of = (
    part: string,
    work: string,
    unit: string,
    against: string,
    read: (result: Overload) => number,
  ): Scenario => ({
    name: `${name}-${part}`,
    group: "overload",
    work: `${what}, twice the load it can serve, ${SECONDS} s: ${work}`,
    against,
    unit,
    judged: "value",
    needs: ["go"],
    rounds: 1,
    long: SECONDS / 3,
    prepare: async (fixture) => ({ subject: async () => read(await run(fixture)), baseline: null }),
  });
  return [
    of("memory", "memory of the second half", "×", "that of the first half", ({ growth }) => growth),
    of(
      "served",
      "requests served",
      "×",
      "the rate when clients wait for responses",
      (one) => one.answered / one.capacity,
    ),
    of("refusal", "median time of a rejection", "ms", "absolute time", ({ refused }) => refused.p50),
    of("health", "median of /health/alive and /health/ready", "ms", "absolute time", ({ health }) => health.p50),
  ];
}
