import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../support/seeded.ts";
import { FAULTS, type FaultName } from "./faults.ts";
import { type Result, run } from "./run.ts";
import type { Sabotage } from "./sabotage.ts";

/**
 * `npm run test:faults`: real nodes, real clients, every fault alone and then in pairs, and the table of what came of it.
 *
 * KEYHOLD_FAULTS_SECONDS     how long faults are injected (300: about all pairs)
 * KEYHOLD_FAULTS_SEED        which choices are made; printed
 * KEYHOLD_FAULTS_ONLY        names of faults, separated by commas
 * KEYHOLD_FAULTS_SABOTAGE    lease, fence or wait: taken out of the product, so that there must be violations
 * KEYHOLD_FAULTS_NODES       3
 * KEYHOLD_FAULTS_CACHE_SIZE  MiB; 0: nothing is answered from memory
 */

const { env } = process;
const seconds = Number(env.KEYHOLD_FAULTS_SECONDS ?? 300);
const faults = (env.KEYHOLD_FAULTS_ONLY?.split(",") ?? Object.keys(FAULTS)) as FaultName[];
const sabotage = (env.KEYHOLD_FAULTS_SABOTAGE ?? null) as Sabotage | null;
const nodes = Number(env.KEYHOLD_FAULTS_NODES ?? 3);
const cacheSize = env.KEYHOLD_FAULTS_CACHE_SIZE;

/** What a run of the usual length must have seen. */
const LEAST = { verifies: 200_000, mutations: 2_000, seconds: 300 };

/** Lines of each list that are shown. */
const SHOWN = 20;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const dir = await mkdtemp(join(tmpdir(), "keyhold-faults-"));
await chmod(dir, 0o711);
const environment: Record<string, string> = cacheSize === undefined ? {} : { KEYHOLD_CACHE_SIZE: cacheSize };
const result = await run({ seed, dir, seconds, nodes, faults, sabotage, isOverAtFirst: false, environment });
print(result);
const { violations, unexpected, verifies, mutations } = result.totals;
const isEnough = seconds < LEAST.seconds || (verifies >= LEAST.verifies && mutations >= LEAST.mutations);
if (!isEnough) console.error(`too few to tell: ${verifies} verifies, ${mutations} mutations`);
const isGood = violations === 0 && unexpected === 0 && isEnough;
if (isGood) await rm(dir, { recursive: true, force: true, maxRetries: 10 });
else console.error(`the logs of the nodes are in ${dir}`);
// Node would wait for ever for what was under way on connections that were reset.
process.exit(isGood ? 0 : 1);

function print({ table, totals, violations, unexpected, slowestRecovery }: Result): void {
  for (const { text } of violations.slice(0, SHOWN)) console.error(`violation: ${text}`);
  for (const text of unexpected.slice(0, SHOWN)) console.error(`unexpected: ${text}`);
  console.info(table);
  console.info(
    `${totals.singles} faults alone, ${totals.pairs} pairs; ${totals.records} records compared after crashes`,
  );
  console.info(`slowest recovery after a round: ${Math.round(slowestRecovery)} ms`);
}
