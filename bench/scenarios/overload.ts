import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { residentMemory } from "../harness/memory.ts";
import type { Scenario } from "../harness/scenario.ts";
import { once, type Stage } from "../harness/stage.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { buildOverload, type OverloadReport, runOverload } from "../overload/load.ts";
import { PATHS } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { stocked } from "./stock.ts";

/** How many times what the service was just seen to bring to an end is sent to it. */
const EXCESS = 2;

const SECONDS = 20;

/** Milliseconds. */
const SAMPLE_INTERVAL = 250;

interface Overload extends OverloadReport {
  /** Requests a second that were served just before, when the clients waited for their answers. */
  readonly capacity: number;
  /** The largest resident memory of the second half, of that of the first. */
  readonly growth: number;
}

interface Work {
  readonly path: string;
  readonly noCache: boolean;
  readonly bodies: (stage: Stage) => Promise<readonly unknown[]>;
}

const verify = once((stage) =>
  overload(stage, {
    path: PATHS.verify,
    noCache: true,
    bodies: async () => (await stocked(stage)).secrets.map((credential) => ({ credential })),
  }),
);
const create = once((stage) => overload(stage, { path: PATHS.issued, noCache: false, bodies: async () => [KEY] }));

async function overload(stage: Stage, { path, noCache, bodies: make }: Work): Promise<Overload> {
  const program = await buildOverload(stage);
  const { url, installation } = await stocked(stage);
  const bodies = await make(stage);
  const capacity = await httpLoad(stage, {
    url: url + path,
    headers: { ...JSON_HEADERS, ...(noCache ? { "cache-control": "no-cache" } : {}) },
    bodies: await jsonBodies(stage, bodies),
    connections: CONNECTIONS,
  })();
  const file = join(stage.dir, `overload${path.replaceAll("/", "-")}`);
  await writeFile(file, bodies.map((body) => JSON.stringify(body)).join("\n"));
  const memory = watchMemory(installation.server.pid);
  const options = { url, path, noCache, bodies: file, rate: EXCESS * capacity, seconds: SECONDS };
  const report = await runOverload(stage, program, options).finally(memory.stop);
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

/** Twice the load that it can serve, for 20 s: every refusal is 503 with `Retry-After`, and health is answered 200 throughout. */
export const overloadScenarios: readonly Scenario[] = [
  ...scenariosOf("verify with no-cache", "overload-verify", verify),
  ...scenariosOf("create", "overload-create", create),
];

function scenariosOf(what: string, name: string, run: (stage: Stage) => Promise<Overload>): Scenario[] {
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
    prepare: async (stage) => ({ subject: async () => read(await run(stage)), baseline: null }),
  });
  return [
    of("memory", "memory of the second half", "×", "that of the first half", ({ growth }) => growth),
    of(
      "served",
      "served all the same",
      "×",
      "what it served when clients waited",
      (one) => one.answered / one.capacity,
    ),
    of("refusal", "median of refusals", "ms", "absolute time", ({ refused }) => refused.p50),
    of("health", "median of /health/alive and /health/ready", "ms", "absolute time", ({ health }) => health.p50),
  ];
}
