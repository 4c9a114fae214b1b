#!/usr/bin/env node
/** `npm run bench -- [names…] [--all] [--quick]`: measures the service against its baselines. */
import { parseArgs } from "node:util";
import { describeMachine } from "./harness/machine.ts";
import { pin } from "./harness/pinning.ts";
import { readFloors, saveResults } from "./harness/results.ts";
import { runScenarios } from "./harness/run.ts";
import type { Scenario } from "./harness/scenario.ts";
import { keeps } from "./harness/statistics.ts";
import { resultText } from "./harness/text.ts";
import { missing } from "./harness/tools.ts";
import { SCENARIOS } from "./scenarios/scenarios.ts";

const USAGE = `npm run bench -- [names or groups…]

  --all    the long scenarios too: they seed up to 5,000,000 keys
  --quick  3 rounds of 1 s instead of 5 of 4 s: for a look; nothing is written, and no bound fails it
  --list   what there is`;

/** Rounds, and seconds of a round of load. */
const FULL = { rounds: 5, seconds: 4 };
const QUICK = { rounds: 3, seconds: 1 };

function choose(names: readonly string[], all: boolean): Scenario[] {
  const unknown = names.find((name) => !SCENARIOS.some((one) => one.name === name || one.group === name));
  if (unknown !== undefined) throw new TypeError(`there is no scenario or group ${unknown}`);
  if (names.length === 0) return SCENARIOS.filter(({ long }) => all || long === undefined);
  return SCENARIOS.filter(({ name, group }) => names.includes(name) || names.includes(group));
}

function list(): 0 {
  const note = (long: number | undefined) =>
    long === undefined ? "" : ` (long: about ${Math.ceil(long / 60)} min, only by name or with --all)`;
  const lines = SCENARIOS.map(
    ({ group, name, work, long }) => `${group.padEnd(10)} ${name.padEnd(24)} ${work}${note(long)}`,
  );
  return say(lines.join("\n"));
}

/** Whether every scenario ran and kept its bound. */
async function bench(scenarios: readonly Scenario[], isQuick: boolean): Promise<boolean> {
  const pinning = pin();
  if (pinning.unpinned !== null) console.log(`Nothing is pinned, so ratios are rough: ${pinning.unpinned}.`);
  const [floors, machine] = await Promise.all([readFloors(), describeMachine(pinning)]);
  let isGood = true;
  const results = await runScenarios(pinning, scenarios, {
    ...(isQuick ? QUICK : FULL),
    onResult: (result) => {
      const bound = floors[result.name];
      isGood &&= isQuick || keeps(result.figure, bound ?? {});
      console.log(`${resultText(result, bound)}\n`);
    },
    onFailure: ({ name }, error) => {
      isGood = false;
      console.error(`${name} could not be measured:`, error);
    },
  });
  const order = SCENARIOS.map(({ name }) => name);
  if (!isQuick) await saveResults(machine, results, order);
  return isGood;
}

/** Exit status: 0 all good, 1 a scenario missed its bound or could not be measured, 2 wrong usage or no load generator. */
async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "boolean" },
      quick: { type: "boolean" },
      list: { type: "boolean" },
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
  return (await bench(choose(positionals, values.all === true), values.quick === true)) ? 0 : 1;
}

function say(text: string): 0 {
  console.log(text);
  return 0;
}

// What was started ends with this process.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
try {
  process.exitCode = await main();
} catch (error) {
  const isUsage = error instanceof TypeError;
  console.error(isUsage ? `${error.message}\n\n${USAGE}` : error);
  process.exitCode = isUsage ? 2 : 1;
}
