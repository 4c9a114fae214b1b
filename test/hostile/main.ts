import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missingToolchains } from "../support/programs/toolchains.ts";
import { seededBy } from "../support/seeded.ts";
import type { Family } from "./case.ts";
import { FAMILIES } from "./families/families.ts";
import { runH2spec } from "./h2spec/run.ts";
import { printReport } from "./report.ts";
import { Runner } from "./runner.ts";
import { runSchemathesis } from "./schemathesis/run.ts";
import type { Target } from "./target.ts";
import { withTargets } from "./targets.ts";

/**
 * `npm run test:hostile`: sends malformed and expensive inputs to servers in separate processes, and prints findings.
 *
 * KEYHOLD_HOSTILE_SECONDS  duration (300)
 * KEYHOLD_HOSTILE_SEED     seed of all random choices; printed
 * KEYHOLD_HOSTILE_ONLY     names of families, separated by commas; `http1:41` is the single case with this number;
 *                          schemathesis and h2spec are programs with their own inputs
 */

const { env } = process;
const seconds = Number(env.KEYHOLD_HOSTILE_SECONDS ?? 300);

/** Programs with their own inputs, and their share of the time, like that of families; h2spec takes the time it needs. */
const PROGRAMS: Readonly<Record<string, number>> = { h2spec: 0, schemathesis: 2 };

const weights = new Map([...FAMILIES.map(({ name, weight }) => [name, weight] as const), ...Object.entries(PROGRAMS)]);
const only = env.KEYHOLD_HOSTILE_ONLY?.split(",") ?? [...weights.keys()];
const totalWeight = only.reduce((sum, name) => sum + (weights.get(name) ?? 0), 0);

/** Number of findings after which the run ends, since each case is repeated many times to isolate it. */
const MAX_FINDINGS = 20;

/**
 * Minimum number of inputs in a run of the default length. Two otherwise idle cores send 35,000, and at least 3,500 under six times their
 * capacity.
 */
const MINIMUM = { inputs: 2_000, seconds: 300 };

await requireToolchains();
const { seed } = seededBy("KEYHOLD_HOSTILE_SEED");
const dir = await mkdtemp(join(tmpdir(), "keyhold-hostile-"));
await chmod(dir, 0o711);
const runner = await withTargets(dir, async (targets, context) => {
  const current = new Runner(targets, context, seed);
  await current.measureMemory("start");
  // schemathesis runs last, because it changes all keys.
  for (const wanted of only.toSorted((a, b) => Number(a === "schemathesis") - Number(b === "schemathesis"))) {
    await runFamily(current, wanted);
    await current.measureMemory(wanted);
  }
  return current;
});
await rm(dir, { recursive: true, force: true, maxRetries: 10 });
printReport(runner);
const isEnough = seconds < MINIMUM.seconds || env.KEYHOLD_HOSTILE_ONLY !== undefined || runner.inputs >= MINIMUM.inputs;
if (!isEnough) console.error(`only ${runner.inputs} inputs: too few`);
// Node would wait for connections that were reset. A pipe may not have taken all output yet.
process.stdout.write("", () => process.exit(runner.findings.length === 0 && isEnough ? 0 : 1));

async function requireToolchains(): Promise<void> {
  const needed = [...(only.includes("schemathesis") ? ["python3"] : []), ...(only.includes("h2spec") ? ["go"] : [])];
  const missing = await missingToolchains(needed);
  if (missing.length === 0) return;
  console.error(`the tests with hostile inputs need more:\n${missing.join("\n")}`);
  process.exit(1);
}

async function runFamily(current: Runner, wanted: string): Promise<void> {
  const [name = "", number] = wanted.split(":");
  const duration = (seconds * (weights.get(name) ?? 0)) / totalWeight;
  const family = FAMILIES.find((one) => one.name === name);
  if (family !== undefined && number !== undefined) await runNumber(current, family, Number(number));
  else if (family !== undefined) await runFor(current, family, duration);
  else if (name === "schemathesis") await runSchemathesisSuite(current, duration);
  else if (name === "h2spec") await runH2specSuite(current);
  else throw new Error(`unknown family "${wanted}"; known: ${[...weights.keys()].join(", ")}`);
}

async function runNumber(current: Runner, family: Family, index: number): Promise<void> {
  for (const target of current.targets) await current.runAlone(family, index, target);
}

/** Runs one batch after another, each against the next server. */
async function runFor(current: Runner, family: Family, duration: number): Promise<void> {
  const end = performance.now() + duration * 1000;
  for (let batch = 0; performance.now() < end && current.findings.length < MAX_FINDINGS; batch++) {
    await current.runBatch(family, batch);
  }
}

/** Runs schemathesis against a server that requires a credential, until it revokes that, and against one without authentication. */
async function runSchemathesisSuite(current: Runner, duration: number): Promise<void> {
  const { targets } = current;
  for (const target of [targets.find(isGuarded), targets.findLast((one) => !isGuarded(one))]) {
    if (target === undefined) throw new Error("no server");
    await current.runDestructiveProgram("schemathesis", target, () => runSchemathesis(target, duration / 2, seed));
  }
}

function isGuarded({ token }: Target): boolean {
  return token !== undefined;
}

/** h2spec has its own servers; a Keyhold server is checked afterwards like after any case. */
async function runH2specSuite(current: Runner): Promise<void> {
  const [target] = current.targets;
  if (target === undefined) throw new Error("no server");
  await current.runProgram("h2spec", target, async () => {
    const { cases, faults } = await runH2spec();
    return { cases, problems: faults };
  });
}
