import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../../support/seeded.ts";
import type { Sabotage } from "../sabotage.ts";
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
 * KEYHOLD_FAILOVER_SABOTAGE   taken out of the product, so that there must be violations
 */

const { env } = process;
const chosen = env.KEYHOLD_FAILOVER_ONLY?.split(",").map(scenarioOf) ?? SCENARIOS;
const sabotage = (env.KEYHOLD_FAILOVER_SABOTAGE ?? null) as Sabotage | null;

/** Lines of each scenario that are shown. */
const SHOWN = 5;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const isPooled = await hasPgBouncer();
const outcomes: Outcome[] = [];
let isGood = true;
for (const scenario of chosen) {
  const outcome = await playOne(scenario, sabotage);
  if (outcome === null) continue;
  outcomes.push(outcome);
  isGood &&= outcome.failures.length === 0;
}
console.info(tableOf(outcomes));
for (const { name, notes } of outcomes) for (const note of notes) console.info(`${name}: ${note}`);
if (sabotage === null && env.KEYHOLD_FAILOVER_ONLY === undefined) await exposeEverySabotage();
// Node would wait for ever for what was under way on connections that were reset.
process.exit(isGood ? 0 : 1);

/** Without it a suite that finds nothing would say nothing of the product. */
async function exposeEverySabotage(): Promise<void> {
  for (const [missing, name] of Object.entries(EXPOSING) as [Sabotage, string][]) {
    const outcome = await playOne(scenarioOf(name), missing);
    const [first] = outcome?.violations ?? [];
    isGood &&= first !== undefined;
    if (first === undefined) console.error(`without the ${missing} scenario ${name} finds no violation`);
    else console.info(`without the ${missing} scenario ${name} finds: ${first.text}`);
  }
}

function scenarioOf(name: string): Scenario {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (found !== undefined) return found;
  throw new Error(`no scenario "${name}"; there are: ${SCENARIOS.map((scenario) => scenario.name).join(", ")}`);
}

async function playOne(scenario: Scenario, missing: Sabotage | null): Promise<Outcome | null> {
  const { name } = scenario;
  if (scenario.needsPgBouncer && !isPooled) {
    console.info(`${name}: skipped: pgbouncer is not installed`);
    return null;
  }
  const dir = await newDir();
  const outcome = await play(scenario, { seed, dir, sabotage: missing }).catch((error: unknown) => {
    console.error(`${name}: not played to its end: ${error instanceof Error ? error.stack : error}`);
    isGood = false;
    return null;
  });
  if (outcome === null) return null;
  console.info(`${name}: ${outcome.title}: ${Math.round(outcome.seconds)} s`);
  const { failures } = outcome;
  if (missing === null) for (const text of failures.slice(0, SHOWN)) console.error(`${name}: ${text}`);
  if (missing === null && failures.length > 0) console.error(`${name}: the logs of the nodes are in ${dir}`);
  else await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  return outcome;
}

/** A folder that other users may pass through. */
async function newDir(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "keyhold-failover-"));
  await chmod(made, 0o711);
  return made;
}
