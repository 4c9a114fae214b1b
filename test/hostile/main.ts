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
 * `npm run test:hostile`: bytes that no client of ours would send, against servers in processes of their own, and what came of it.
 *
 * KEYHOLD_HOSTILE_SECONDS  how long inputs are sent (300)
 * KEYHOLD_HOSTILE_SEED     which choices are made; printed
 * KEYHOLD_HOSTILE_ONLY     names of families, separated by commas; `http1:41` is the case with this number alone;
 *                          schemathesis and h2spec are programs that have inputs of their own
 */

const { env } = process;
const seconds = Number(env.KEYHOLD_HOSTILE_SECONDS ?? 300);

/** Programs with inputs of their own, and their share of the time, as of the families; h2spec takes what it takes. */
const PROGRAMS: Readonly<Record<string, number>> = { h2spec: 0, schemathesis: 2 };

const weights = new Map([...FAMILIES.map(({ name, weight }) => [name, weight] as const), ...Object.entries(PROGRAMS)]);
const only = env.KEYHOLD_HOSTILE_ONLY?.split(",") ?? [...weights.keys()];
const totalWeight = only.reduce((sum, name) => sum + (weights.get(name) ?? 0), 0);

/** Findings after which the run ends: each is played many times to find the case. */
const MAX_FINDINGS = 20;

/**
 * Inputs that a run of the usual length must have sent at the least. Two cores that have nothing else to do send 35,000, and with six times
 * the work they can do 3,500 and more.
 */
const LEAST = { inputs: 2_000, seconds: 300 };

await requireToolchains();
const { seed } = seededBy("KEYHOLD_HOSTILE_SEED");
const dir = await mkdtemp(join(tmpdir(), "keyhold-hostile-"));
await chmod(dir, 0o711);
const runner = await withTargets(dir, async (targets, world) => {
  const current = new Runner(targets, world, seed);
  await current.measureMemory("start");
  // Last what leaves no key as it was.
  for (const wanted of only.toSorted((a, b) => Number(a === "schemathesis") - Number(b === "schemathesis"))) {
    await play(current, wanted);
    await current.measureMemory(wanted);
  }
  return current;
});
await rm(dir, { recursive: true, force: true, maxRetries: 10 });
printReport(runner);
const isEnough = seconds < LEAST.seconds || env.KEYHOLD_HOSTILE_ONLY !== undefined || runner.inputs >= LEAST.inputs;
if (!isEnough) console.error(`only ${runner.inputs} inputs, too few to tell`);
// Node would wait for connections that were reset.
process.exit(runner.findings.length === 0 && isEnough ? 0 : 1);

async function requireToolchains(): Promise<void> {
  const needed = [...(only.includes("schemathesis") ? ["python3"] : []), ...(only.includes("h2spec") ? ["go"] : [])];
  const missing = await missingToolchains(needed);
  if (missing.length === 0) return;
  console.error(`the tests with hostile inputs need more:\n${missing.join("\n")}`);
  process.exit(1);
}

async function play(current: Runner, wanted: string): Promise<void> {
  const [name = "", number] = wanted.split(":");
  const duration = (seconds * (weights.get(name) ?? 0)) / totalWeight;
  const family = FAMILIES.find((one) => one.name === name);
  if (family !== undefined && number !== undefined) await playNumber(current, family, Number(number));
  else if (family !== undefined) await playFor(current, family, duration);
  else if (name === "schemathesis") await playSchemathesis(current, duration);
  else if (name === "h2spec") await playH2spec(current);
  else throw new Error(`unknown family "${wanted}"; known: ${[...weights.keys()].join(", ")}`);
}

async function playNumber(current: Runner, family: Family, index: number): Promise<void> {
  for (const target of current.targets) await current.playAlone(family, index, target);
}

/** Batch after batch, each against the next server. */
async function playFor(current: Runner, family: Family, duration: number): Promise<void> {
  const end = performance.now() + duration * 1000;
  for (let batch = 0; performance.now() < end && current.findings.length < MAX_FINDINGS; batch++) {
    await current.playBatch(family, batch);
  }
}

/** Against a server that requires a credential, until it revokes that too, and against one where everyone may do everything. */
async function playSchemathesis(current: Runner, duration: number): Promise<void> {
  const { targets } = current;
  for (const target of [targets.find(isGuarded), targets.findLast((one) => !isGuarded(one))]) {
    if (target === undefined) throw new Error("there is no server");
    await current.playDestructively("schemathesis", target, () => runSchemathesis(target, duration / 2, seed));
  }
}

function isGuarded({ token }: Target): boolean {
  return token !== undefined;
}

/** It has servers of its own; ours is looked at as after anything else. */
async function playH2spec(current: Runner): Promise<void> {
  const [target] = current.targets;
  if (target === undefined) throw new Error("there is no server");
  await current.playProgram("h2spec", target, async () => {
    const { cases, faults } = await runH2spec();
    return { cases, problems: faults };
  });
}
