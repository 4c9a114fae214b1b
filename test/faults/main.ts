import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../support/seeded.ts";
import { type Defect, EXPOSING } from "./fault-injection.ts";
import { FAULTS, type FaultName } from "./faults.ts";
import { type Result, run } from "./run.ts";

/**
 * `npm run test:faults`: real nodes, real clients, every fault alone and then in pairs, and the table of what came of it. A run of
 * the usual length with all faults then takes each part of the argument out of the nodes, which the checker must find out.
 *
 * KEYHOLD_FAULTS_SECONDS     how long faults are injected (300: about all pairs)
 * KEYHOLD_FAULTS_SEED        which choices are made; printed
 * KEYHOLD_FAULTS_ONLY        names of faults, separated by commas
 * KEYHOLD_FAULTS_DEFECT    lease, fence or wait: taken out of the product, so that there must be violations
 * KEYHOLD_FAULTS_NODES       3
 * KEYHOLD_FAULTS_CACHE_SIZE  MiB; 0: nothing is answered from memory
 */

const { env } = process;
const seconds = Number(env.KEYHOLD_FAULTS_SECONDS ?? 300);
const faults = (env.KEYHOLD_FAULTS_ONLY?.split(",") ?? Object.keys(FAULTS)) as FaultName[];
const defect = (env.KEYHOLD_FAULTS_DEFECT ?? null) as Defect | null;
const nodes = Number(env.KEYHOLD_FAULTS_NODES ?? 3);
const cacheSize = env.KEYHOLD_FAULTS_CACHE_SIZE;

/** What a run of the usual length must have seen. */
const LEAST = { verifies: 200_000, mutations: 2_000, seconds: 300 };

/** Lines of each list that are shown. */
const SHOWN = 20;

/** Seconds that the checker has to find a violation when a part of the argument is missing. */
const DEFECT_SECONDS = 60;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const dir = await newDir();
const environment: Record<string, string> = cacheSize === undefined ? {} : { KEYHOLD_CACHE_SIZE: cacheSize };
const result = await run({ seed, dir, seconds, nodes, faults, defect, isOverAtFirst: false, environment });
print(result);
const { violations, unexpected, verifies, mutations } = result.totals;
const isEnough = seconds < LEAST.seconds || (verifies >= LEAST.verifies && mutations >= LEAST.mutations);
if (!isEnough) console.error(`too few to tell: ${verifies} verifies, ${mutations} mutations`);
const isGood = violations === 0 && unexpected === 0 && isEnough;
if (isGood) await remove(dir);
else console.error(`the logs of the nodes are in ${dir}`);
const isWhole = defect === null && env.KEYHOLD_FAULTS_ONLY === undefined && seconds >= LEAST.seconds;
const isExposed = !isWhole || (await exposesEveryDefect());
// Node would wait for ever for in-flight requests on connections that were reset.
process.exit(isGood && isExposed ? 0 : 1);

/** A folder that other users may pass through. */
async function newDir(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "keyhold-faults-"));
  await chmod(made, 0o711);
  return made;
}

function remove(made: string): Promise<void> {
  return rm(made, { recursive: true, force: true, maxRetries: 10 });
}

/** Without it a checker that finds nothing would say nothing of the product. */
async function exposesEveryDefect(): Promise<boolean> {
  let isComplete = true;
  for (const [name, exposing] of Object.entries(EXPOSING) as [Defect, readonly FaultName[]][]) {
    const own = await newDir();
    const options = { seed, dir: own, seconds: DEFECT_SECONDS, nodes, faults: exposing, environment };
    const { violations: found } = await run({ ...options, defect: name, isOverAtFirst: true });
    if (found.length === 0) console.error(`without the ${name} the checker finds no violation`);
    else console.info(`without the ${name}: ${found[0]?.text}`);
    isComplete &&= found.length > 0;
    await remove(own);
  }
  return isComplete;
}

function print({ table, totals, violations, unexpected, slowestRecovery }: Result): void {
  for (const { text } of violations.slice(0, SHOWN)) console.error(`violation: ${text}`);
  for (const text of unexpected.slice(0, SHOWN)) console.error(`unexpected: ${text}`);
  console.info(table);
  console.info(
    `${totals.singles} faults alone, ${totals.pairs} pairs; ${totals.records} records compared after crashes`,
  );
  console.info(`slowest recovery after a round: ${Math.round(slowestRecovery)} ms`);
}
