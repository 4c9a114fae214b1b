import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hasPgBouncer } from "../../support/pgbouncer.ts";
import { seededBy } from "../../support/seeded.ts";
import type { Defect } from "../fault-injection.ts";
import { type Outcome, tableOf } from "./outcome.ts";
import { runScenario } from "./run-scenario.ts";
import { DETECTED_BY, SCENARIOS, type Scenario } from "./scenarios.ts";

/**
 * `npm run test:failover`: three nodes on a primary with a standby, under load, during correct and incorrect failovers; prints a table of
 * the results. A run of all scenarios then removes each protection from the nodes, which a scenario must detect.
 *
 * KEYHOLD_FAULTS_SEED        seed of all random choices; printed
 * KEYHOLD_FAILOVER_ONLY      names of scenarios, separated by commas
 * KEYHOLD_FAILOVER_DEFECT    protection to remove, so that there must be violations
 */

const { env } = process;
const chosen = env.KEYHOLD_FAILOVER_ONLY?.split(",").map(scenarioOf) ?? SCENARIOS;
const defect = (env.KEYHOLD_FAILOVER_DEFECT ?? null) as Defect | null;

/** Maximum number of printed lines per scenario. */
const MAX_LINES = 5;

/** Runs in which a removed protection must be detected once; a violation needs calls that coincide within milliseconds. */
const ATTEMPTS = 3;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const isPooled = await hasPgBouncer();
const outcomes: Outcome[] = [];
const failures: string[] = [];
for (const scenario of chosen) {
  const outcome = await runOne(scenario, defect);
  if (outcome !== null) outcomes.push(outcome);
}
console.info(tableOf(outcomes));
for (const { name, notes } of outcomes) for (const note of notes) console.info(`${name}: ${note}`);
if (defect === null && env.KEYHOLD_FAILOVER_ONLY === undefined)
  for (const [missing, name] of Object.entries(DETECTED_BY) as [Defect, string][]) await expose(missing, name);
console.info(`${outcomes.length} scenarios, ${failures.length} failures`);
for (const failure of failures) console.error(failure);
// Node would wait forever for requests in flight on connections that were reset.
process.exit(failures.length === 0 ? 0 : 1);

/** Proves that a scenario detects the missing protection; otherwise the absence of violations would prove nothing. */
async function expose(missing: Defect, name: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const outcome = await runOne(scenarioOf(name), missing);
    const [first] = outcome?.violations ?? [];
    if (first === undefined) continue;
    console.info(`without "${missing}", scenario ${name} finds in run ${attempt}: ${first.text}`);
    return;
  }
  failures.push(`without "${missing}", scenario ${name} finds no violation in ${ATTEMPTS} runs`);
}

function scenarioOf(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  throw new Error(`unknown scenario "${name}"; known: ${SCENARIOS.map((scenario) => scenario.name).join(", ")}`);
}

async function runOne(scenario: Scenario, missing: Defect | null): Promise<Outcome | null> {
  const { name } = scenario;
  if (scenario.needsPgBouncer && !isPooled) {
    console.info(`${name}: skipped: pgbouncer is not installed`);
    return null;
  }
  const dir = await newDir();
  const outcome = await runScenario(scenario, { seed, dir, defect: missing }).catch((error: unknown) => {
    failures.push(`${name}: not completed: ${error instanceof Error ? error.stack : error}`);
    return null;
  });
  if (outcome === null) return null;
  console.info(`${name}: ${outcome.title}: ${Math.round(outcome.seconds)} s, ${outcome.failures.length} failures`);
  if (missing === null && outcome.failures.length > 0) {
    failures.push(...outcome.failures.slice(0, MAX_LINES).map((text) => `${name}: ${text}`));
    failures.push(`${name}: the logs of the nodes are in ${dir}`);
  } else await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  return outcome;
}

/** Creates a folder that other users may traverse. */
async function newDir(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "keyhold-failover-"));
  await chmod(made, 0o711);
  return made;
}
