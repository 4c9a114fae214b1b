import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../../support/seeded.ts";
import type { Defect } from "../fault-injection.ts";
import { type LimitsResult, runLimits } from "./run.ts";

/**
 * The second part of `npm run test:faults`: limits through faults, and then with a limiter that uses each grant twice, which must be noticed.
 *
 * KEYHOLD_FAULTS_SECONDS  below the default of 300, faults are injected for a shorter time, and the limiter is not broken
 * KEYHOLD_FAULTS_SEED     seed of all random choices; printed
 * KEYHOLD_FAULTS_ONLY, KEYHOLD_FAULTS_DEFECT  belong to the first part: nothing is run
 */

const { env } = process;
if (env.KEYHOLD_FAULTS_ONLY !== undefined || env.KEYHOLD_FAULTS_DEFECT !== undefined) process.exit(0);
const isWhole = Number(env.KEYHOLD_FAULTS_SECONDS ?? 300) >= 300;

/** Seconds with faults before the first period of a quota ends, and after it. */
const seconds = isWhole ? 35 : 20;

/** Seconds without faults before. */
const steadySeconds = isWhole ? 40 : 0;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");

/** What the oracle must find of a broken limiter. */
const FOUND = [/^a window has/, /^a quota of \d+ admitted \d+$/];

const { failures, notes } = await run(null);
for (const text of [...notes, ...failures]) console.info(`limits: ${text}`);
const isExposed = !isWhole || (await exposesDefect());
process.exit(failures.length === 0 && isExposed ? 0 : 1);

/** Proves that the oracle notices a limiter that is broken. */
async function exposesDefect(): Promise<boolean> {
  const broken = await run("grants");
  for (const text of broken.failures) console.info(`limits, with grants that are used twice: ${text}`);
  const isNoticed = FOUND.every((found) => broken.failures.some((failure) => found.test(failure)));
  if (!isNoticed) console.error("grants that are used twice were not noticed");
  return isNoticed;
}

async function run(defect: Defect | null): Promise<LimitsResult> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-limits-"));
  await chmod(dir, 0o711);
  const result = await runLimits({ seed, dir, defect, seconds, steadySeconds: defect === null ? steadySeconds : 0 });
  await rm(dir, { recursive: true, force: true, maxRetries: 10 });
  return result;
}
