import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../support/seeded.ts";
import { DETECTED_BY, type Defect } from "./fault-injection.ts";
import { FAULTS, type FaultName } from "./faults.ts";
import { type Result, run } from "./run.ts";

/**
 * `npm run test:faults`: real nodes and clients, every fault alone and then in pairs; prints a table of the results. A run of the default
 * length with all faults then removes each protection from the nodes, which the checker must detect.
 *
 * KEYHOLD_FAULTS_SECONDS     duration of fault injection (300): each fault alone, then as many of the pairs as it allows
 * KEYHOLD_FAULTS_SEED        seed of all random choices; printed
 * KEYHOLD_FAULTS_ONLY        names of faults, separated by commas
 * KEYHOLD_FAULTS_DEFECT      lease, fence, log, wait or outbox: protection to remove, so that there must be violations
 * KEYHOLD_FAULTS_NODES       number of nodes (3)
 * KEYHOLD_FAULTS_CACHE_SIZE  MiB; 0: no cache
 */

const { env } = process;
const seconds = Number(env.KEYHOLD_FAULTS_SECONDS ?? 300);
const faults = (env.KEYHOLD_FAULTS_ONLY?.split(",") ?? Object.keys(FAULTS)) as FaultName[];
const defect = (env.KEYHOLD_FAULTS_DEFECT ?? null) as Defect | null;
const nodes = Number(env.KEYHOLD_FAULTS_NODES ?? 3);
const cacheSize = env.KEYHOLD_FAULTS_CACHE_SIZE;

/** The minimum of a run of the default length. */
const MINIMUM = { verifies: 200_000, mutations: 2_000, seconds: 300 };

/** Maximum number of printed lines per list. */
const MAX_LINES = 20;

/** Seconds in which the checker must find a violation if a protection is missing. */
const DEFECT_SECONDS = 60;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const dir = await newDir();
const environment: Record<string, string> = cacheSize === undefined ? {} : { KEYHOLD_CACHE_SIZE: cacheSize };
const result = await run({ seed, dir, seconds, nodes, faults, defect, stopAtFirstViolation: false, environment });
print(result);
const { violations, unexpected, verifies, mutations } = result.totals;
const isEnough = seconds < MINIMUM.seconds || (verifies >= MINIMUM.verifies && mutations >= MINIMUM.mutations);
if (!isEnough) console.error(`too few responses: ${verifies} verifies, ${mutations} mutations`);
const { missing } = result.totals;
if (missing.length > 0) console.error(`never acknowledged: ${missing.join(", ")}`);
const isGood = violations === 0 && unexpected === 0 && isEnough && missing.length === 0;
if (isGood) await remove(dir);
else console.error(`the logs of the nodes are in ${dir}`);
const isWhole = defect === null && env.KEYHOLD_FAULTS_ONLY === undefined && seconds >= MINIMUM.seconds;
const isExposed = !isWhole || (await exposesEveryDefect());
// Node would wait forever for requests in flight on connections that were reset.
process.exit(isGood && isExposed ? 0 : 1);

/** Creates a folder that other users may traverse. */
async function newDir(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), "keyhold-faults-"));
  await chmod(made, 0o711);
  return made;
}

function remove(made: string): Promise<void> {
  return rm(made, { recursive: true, force: true, maxRetries: 10 });
}

/** Proves that the checker detects each missing protection; otherwise the absence of violations would prove nothing. */
async function exposesEveryDefect(): Promise<boolean> {
  let isComplete = true;
  for (const [name, exposing] of Object.entries(DETECTED_BY) as [Defect, readonly FaultName[]][]) {
    const own = await newDir();
    const options = { seed, dir: own, seconds: DEFECT_SECONDS, nodes, faults: exposing, environment };
    const { violations: found } = await run({ ...options, defect: name, stopAtFirstViolation: true });
    if (found.length === 0) console.error(`without the ${name} the checker finds no violation`);
    else console.info(`without the ${name}: ${found[0]?.text}`);
    isComplete &&= found.length > 0;
    await remove(own);
  }
  return isComplete;
}

function print({ table, totals, violations, unexpected, slowestRecovery }: Result): void {
  console.info(table);
  console.info(
    `${totals.singles} faults alone, ${totals.pairs} pairs; ${totals.records} records compared after crashes`,
  );
  console.info(
    `slowest recovery after a round: ${Math.round(slowestRecovery)} ms after the database accepted connections`,
  );
  for (const { text } of violations.slice(0, MAX_LINES)) console.error(`violation: ${text}`);
  for (const text of unexpected.slice(0, MAX_LINES)) console.error(`unexpected: ${text}`);
}
