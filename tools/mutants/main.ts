import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { matchesGlob, resolve } from "node:path";
import { parseArgs } from "node:util";
import { seeded } from "../../test/support/seeded.ts";
import { LONG_TESTS } from "../../vitest.config.ts";
import { type Mutant, mutantsOf } from "./operators.ts";
import { testFinder } from "./tests.ts";

/**
 * `node tools/mutants/main.ts --since COMMIT`: draws mutants of the lines of `src` added since the commit, applies each to the work tree,
 * and runs the test files that concern it most. One that survives is equivalent, or lacks a test. Run it in a clone of its own.
 *
 * --count N        mutants (40), at most two of a file
 * --tests N        test files for each (8), long ones excepted
 * --limit SECONDS  for the tests of one mutant (180)
 * --seed N         of the sample; printed
 */
const { values } = parseArgs({
  options: {
    since: { type: "string", default: "HEAD~1" },
    count: { type: "string", default: "40" },
    tests: { type: "string", default: "8" },
    limit: { type: "string", default: "180" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const root = resolve(import.meta.dirname, "../..");
const random = seeded(Number(values.seed));
const say = (line: string) => void process.stdout.write(`${line}\n`);
const git = (...args: string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });
/** Besides long tests: the one that counts what mutants remove. */
const EXCLUDED = [...LONG_TESTS, "test/architecture.test.ts"];
const isTest = (file: string) => file.endsWith(".test.ts") && !EXCLUDED.some((pattern) => matchesGlob(file, pattern));
const testsOf = testFinder(root, isTest);

interface Drawn extends Mutant {
  readonly file: string;
}

type Outcome = "killed" | "does not compile" | "SURVIVED" | "over the time limit";

// For the restoration of the source at the exit.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
say(`--seed ${random.seed} --since ${values.since}`);
const outcomes: Outcome[] = [];
for (const mutant of draw()) {
  const outcome = judge(mutant);
  outcomes.push(outcome);
  say(`${outcomes.length}. ${outcome}: ${describe(mutant)}`);
}
const count = (outcome: string) => outcomes.filter((one) => one === outcome).length;
say(["killed", "SURVIVED", "over the time limit", "does not compile"].map((one) => `${count(one)} ${one}`).join(", "));

function draw(): Drawn[] {
  if (git("status", "--porcelain", "src").trim() !== "") throw new Error("src/ has changes that are not committed");
  const added = git("diff", "--name-only", "--diff-filter=d", values.since, "--", "src").split("\n");
  const files = added.filter((file) => file.endsWith(".ts"));
  const all = files.flatMap((file) => random.shuffled(inAddedLines(file)).slice(0, 2));
  return random.shuffled(all).slice(0, Number(values.count));
}

function inAddedLines(file: string): Drawn[] {
  const source = readFileSync(resolve(root, file), "utf8");
  const hunks = [...git("diff", "-U0", values.since, "--", file).matchAll(/^@@ .*\+(\d+)(?:,(\d+))? @@/gm)];
  const lineOf = (position: number) => source.slice(0, position).split("\n").length;
  const isAdded = ({ start }: Mutant) =>
    hunks.some(([, first, length = "1"]) => {
      const offset = lineOf(start) - Number(first);
      return offset >= 0 && offset < Number(length);
    });
  return mutantsOf(source)
    .filter(isAdded)
    .map((mutant) => ({ ...mutant, file }));
}

function judge(mutant: Drawn): Outcome {
  const path = resolve(root, mutant.file);
  const source = readFileSync(path, "utf8");
  const restore = () => writeFileSync(path, source);
  process.once("exit", restore);
  try {
    writeFileSync(path, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end));
    const status = run("vitest", ["run", "--bail=1", ...testsOf(mutant.file, Number(values.tests))]);
    if (status === null) return "over the time limit";
    if (status !== 0) return "killed";
    return run("tsc", []) === 0 ? "SURVIVED" : "does not compile";
  } finally {
    restore();
    process.off("exit", restore);
  }
}

/** Returns the exit code of a program of the packages; null if it takes longer. */
function run(program: string, args: readonly string[]): number | null {
  const timeout = Number(values.limit) * 1000;
  const options = { cwd: root, stdio: "ignore", timeout, killSignal: "SIGKILL" } as const;
  return spawnSync(resolve(root, "node_modules/.bin", program), args, options).status;
}

/** Returns the place, the operator, and the text before and after. */
function describe({ file, operator, start, end, text }: Drawn): string {
  const source = readFileSync(resolve(root, file), "utf8");
  const line = source.slice(0, start).split("\n").length;
  const short = (part: string) => part.replaceAll(/\s+/g, " ").slice(0, 100);
  return `${file}:${line} ${operator}: ${short(source.slice(start, end))} -> ${short(text)}`;
}
