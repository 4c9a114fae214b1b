import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../../support/seeded.ts";
import type { Defect } from "../fault-injection.ts";
import { type Outcome, tableOf } from "./outcome.ts";
import { hasPgBouncer } from "./pgbouncer.ts";
import { play } from "./play.ts";
import { EXPOSING, SCENARIOS, type Scenario } from "./scenarios.ts";

/**
 * `npm run test:failover`: three nodes on a primary with a standby, under load, through failovers that are made well or badly, and the
 * table of what came of it. A run of all scenarios then takes each protection out of the nodes, which a scenario must find out.
 *
 * KEYHOLD_FAULTS_SEED         which choices are made; printed
 * KEYHOLD_FAILOVER_ONLY       names of scenarios, separated by commas
 * KEYHOLD_FAILOVER_DEFECT   taken out of the product, so that there must be violations
 */

const { env } = process;
const chosen = env.KEYHOLD_FAILOVER_ONLY?.split(",").map(scenarioOf) ?? SCENARIOS;
const defect = (env.KEYHOLD_FAILOVER_DEFECT ?? null) as Defect | null;

/** Lines of each scenario that are shown. */
const SHOWN = 5;

/** Runs in which a protection that was taken out must be missed once: a violation needs calls to meet within milliseconds. */
const ATTEMPTS = 3;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const isPooled = await hasPgBouncer();
const outcomes: Outcome[] = [];
const failures: string[] = [];
for (const scenario of chosen) {
  const outcome = await playOne(scenario, defect);
  if (outcome !== null) outcomes.push(outcome);
}
console.info(tableOf(outcomes));
for (const { name, notes } of outcomes) for (const note of notes) console.info(`${name}: ${note}`);
if (defect === null && env.KEYHOLD_FAILOVER_ONLY === undefined)
  for (const [missing, name] of Object.entries(EXPOSING) as [Defect, string][]) await expose(missing, name);
console.info(`${outcomes.length} scenarios, ${failures.length} failures`);
for (const failure of failures) console.error(failure);
// Node would wait for ever for in-flight requests on connections that were reset.
process.exit(failures.length === 0 ? 0 : 1);

/** Without it a suite that finds nothing would say nothing of the product. */
async function expose(missing: Defect, name: string): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const outcome = await playOne(scenarioOf(name), missing);
    const [first] = outcome?.violations ?? [];
    if (first === undefined) continue;
    console.info(`without the ${missing} scenario ${name} finds, at attempt ${attempt}: ${first.text}`);
    return;
  }
  failures.push(`without the ${missing} scenario ${name} finds no violation in ${ATTEMPTS} runs`);
}

function scenarioOf(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  throw new Error(`no scenario "${name}"; there are: ${SCENARIOS.map((scenario) => scenario.name).join(", ")}`);
}

async function playOne(scenario: Scenario, missing: Defect | null): Promise<Outcome | null> {
  const { name } = scenario;
  if (scenario.needsPgBouncer && !isPooled) {
    console.info(`${name}: skipped: pgbouncer is not installed`);
    return null;
  }
  const dir = await newDir();
  const outcome = await play(scenario, { seed, dir, defect: missing }).catch((error: unknown) => {
    failures.push(`${name}: not played to its end: ${error instanceof Error ? error.stack : error}`);
    return null;
  });
  if (outcome === null) return null;
  console.info(`${name}: ${outcome.title}: ${Math.round(outcome.seconds)} s, ${outcome.failures.length} failures`);
  if (missing === null && outcome.failures.length > 0) {
    failures.push(...outcome.failures.slice(0, SHOWN).map((text) => `${name}: ${text}`));
    failures.push(`${name}: the logs of the nodes are in ${dir}`);
  } else await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  return outcome;
}

/** A folder that other users may pass through. */
async function newDir(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "keyhold-failover-"));
  await chmod(made, 0o711);
  return made;
}
