#!/usr/bin/env node
/** `npm run bench -- [names…] [--all] [--quick]`: measures the service against baselines. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { compareCheckouts } from "./harness/compare.ts";
import { describeMachine } from "./harness/machine.ts";
import { type Pinning, pin } from "./harness/pinning.ts";
import { type Result, readThresholds, saveResults, type Thresholds } from "./harness/results.ts";
import { runScenarios } from "./harness/run.ts";
import type { Scenario } from "./harness/scenario.ts";
import { type Bound, isWithin } from "./harness/statistics.ts";
import { comparisonText, resultText } from "./harness/text.ts";
import { missing } from "./harness/tools.ts";
import { SCENARIOS } from "./scenarios/scenarios.ts";
import { programOf } from "./subject/installation.ts";

const USAGE = `npm run bench -- [names or groups…]

  --all    also run the long scenarios, which seed up to 5,000,000 keys
  --quick  3 rounds of 1 s instead of 5 of 4 s; writes no results and ignores bounds
  --against <folder>
           compare with another checkout, which must have its node_modules; default: the scenarios
           with a bound for it; writes no results
  --list   list the scenarios`;

/** Number of rounds, and seconds of a round of load. */
const FULL = { rounds: 5, seconds: 4 };
const QUICK = { rounds: 3, seconds: 1 };

/** A comparison detects differences of 2 %: more and shorter rounds, with several starts. */
const FULL_COMPARISON = { starts: 3, rounds: 9, seconds: 2 };
const QUICK_COMPARISON = { starts: 1, ...QUICK };

function choose(names: readonly string[], all: boolean): Scenario[] {
  const unknown = names.find((name) => !SCENARIOS.some((one) => one.name === name || one.group === name));
  if (unknown !== undefined) throw new TypeError(`unknown scenario or group ${unknown}`);
  if (names.length === 0) return SCENARIOS.filter(({ long }) => all || long === undefined);
  return SCENARIOS.filter(({ name, group }) => names.includes(name) || names.includes(group));
}

/** Returns the scenarios whose programs are installed, and prints which others are skipped. */
function runnable(scenarios: readonly Scenario[]): Scenario[] {
  return scenarios.filter(({ name, needs = [] }) => {
    const packages = missing(needs);
    if (packages.length > 0) console.log(`${name} is skipped. On Debian: apt-get install ${packages.join(" ")}\n`);
    return packages.length === 0;
  });
}

function list(): 0 {
  const note = (long: number | undefined) =>
    long === undefined ? "" : ` (long: about ${Math.ceil(long / 60)} min, only by name or with --all)`;
  const lines = SCENARIOS.map(
    ({ group, name, work, long }) => `${group.padEnd(10)} ${name.padEnd(24)} ${work}${note(long)}`,
  );
  return say(lines.join("\n"));
}

/** Returns whether every scenario ran and was within its bound. */
async function bench(scenarios: readonly Scenario[], isQuick: boolean): Promise<boolean> {
  const pinning = pinned();
  const [thresholds, machine] = await Promise.all([readThresholds(), describeMachine(pinning)]);
  const report = reportOf(isQuick, ({ name }) => thresholds[name], resultText);
  const results = await runScenarios(pinning, scenarios, { ...(isQuick ? QUICK : FULL), ...report });
  const order = SCENARIOS.map(({ name }) => name);
  if (!isQuick) await saveResults(machine, results, order);
  return report.isGood();
}

/** Returns whether every scenario ran and was within its bound against the other checkout. */
async function compare(other: string, names: readonly string[], isQuick: boolean): Promise<boolean> {
  if (![programOf({ checkout: other }), join(other, "node_modules")].every(existsSync)) {
    throw new TypeError(`${other} is not a checkout of Keyhold with node_modules`);
  }
  const thresholds = await readThresholds();
  const scenarios = runnable(names.length === 0 ? comparable(thresholds) : choose(names, false));
  const report = reportOf(isQuick, ({ name }) => thresholds[name]?.against, comparisonText);
  await compareCheckouts(pinned(), scenarios, {
    other,
    ...(isQuick ? QUICK_COMPARISON : FULL_COMPARISON),
    ...report,
  });
  return report.isGood();
}

function pinned(): Pinning {
  const pinning = pin();
  if (pinning.unpinned !== null) console.log(`Processes are not pinned, so ratios are imprecise: ${pinning.unpinned}.`);
  return pinning;
}

/** Prints results as they arrive, and records whether all were within their bounds. */
function reportOf(
  isQuick: boolean,
  boundOf: (result: Result) => Bound | undefined,
  toText: (result: Result, bound: Bound | undefined) => string,
) {
  let isGood = true;
  return {
    isGood: () => isGood,
    onResult: (result: Result) => {
      const bound = boundOf(result);
      isGood &&= isQuick || isWithin(result.figure, bound ?? {});
      console.log(`${toText(result, bound)}\n`);
    },
    onFailure: ({ name }: Scenario, error: unknown) => {
      isGood = false;
      console.error(`${name} could not be measured:`, error);
    },
  };
}

function comparable(thresholds: Thresholds): Scenario[] {
  return SCENARIOS.filter(({ name }) => thresholds[name]?.against !== undefined);
}

/** Exit status: 0 success, 1 a scenario exceeded its bound or could not be measured, 2 invalid usage or no load generator. */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "boolean" },
      quick: { type: "boolean" },
      list: { type: "boolean" },
      against: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help) return say(USAGE);
  if (values.list) return list();
  const packages = missing(["wrk", "h2load"]);
  if (packages.length > 0) {
    console.error(`The load generators are missing. On Debian: apt-get install ${packages.join(" ")}`);
    return 2;
  }
  const { against, all = false, quick = false } = values;
  const isGood =
    against === undefined
      ? await bench(runnable(choose(positionals, all)), quick)
      : await compare(resolve(against), positionals, quick);
  return isGood ? 0 : 1;
}

function say(text: string): 0 {
  console.log(text);
  return 0;
}

// Servers stop with this process.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
try {
  process.exitCode = await main();
} catch (error) {
  const isUsage = error instanceof TypeError;
  console.error(isUsage ? `${error.message}\n\n${USAGE}` : error);
  process.exitCode = isUsage ? 2 : 1;
}
