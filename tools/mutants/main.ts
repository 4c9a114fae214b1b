import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
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
 * --tests N        test files for each (8); long ones only if they were changed with the line
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
const testsOf = testFinder(root, (file) => LONG_TESTS.some((pattern) => matchesGlob(file, pattern)));

interface Drawn extends Mutant {
  readonly file: string;
}

type Outcome = "killed" | "does not compile" | "SURVIVED" | "over the time limit";

let running: ChildProcess | undefined;
// The source is restored at the exit.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    if (running !== undefined) kill(running);
    process.exit(1);
  });
say(`--seed ${random.seed} --since ${values.since}`);
const outcomes: Outcome[] = [];
for (const mutant of draw()) {
  const outcome = await judge(mutant);
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

async function judge(mutant: Drawn): Promise<Outcome> {
  const path = resolve(root, mutant.file);
  const source = readFileSync(path, "utf8");
  const restore = () => writeFileSync(path, source);
  process.once("exit", restore);
  const tests = testsOf(mutant.file, changedWith(mutant), Number(values.tests));
  try {
    writeFileSync(path, source.slice(0, mutant.start) + mutant.text + source.slice(mutant.end));
    // The configuration of all tests: that of `npm test` leaves out long ones.
    const status = await run("vitest", ["run", "--config", "tools/mutants/vitest.config.ts", "--bail=1", ...tests]);
    if (status === null) return "over the time limit";
    if (status !== 0) return "killed";
    return (await run("tsc", [])) === 0 ? "SURVIVED" : "does not compile";
  } finally {
    restore();
    process.off("exit", restore);
  }
}

/** Returns the test files that were changed in the commit that added the line of a mutant. */
function changedWith({ file, start }: Drawn): ReadonlySet<string> {
  const line = String(readFileSync(resolve(root, file), "utf8").slice(0, start).split("\n").length);
  const [commit = ""] = git("blame", "-w", "-M", "--porcelain", "-L", `${line},${line}`, "--", file).split(" ");
  return new Set(git("show", "--name-only", "--format=", commit, "--", "test").split("\n"));
}

/** Returns the exit code of a program of the packages; null if it takes longer than the limit. */
async function run(program: string, args: readonly string[]): Promise<number | null> {
  const child = spawn(resolve(root, "node_modules/.bin", program), args, {
    cwd: root,
    stdio: "ignore",
    detached: true,
  });
  running = child;
  const timer = setTimeout(() => kill(child), Number(values.limit) * 1000);
  const [status] = await once(child, "exit");
  clearTimeout(timer);
  running = undefined;
  return status;
}

/** Kills a program with the processes that it has started. */
function kill({ pid = 0 }: ChildProcess): void {
  process.kill(-pid, "SIGKILL");
}

/** Returns the place, the operator, and the text before and after. */
function describe({ file, operator, start, end, text }: Drawn): string {
  const source = readFileSync(resolve(root, file), "utf8");
  const line = source.slice(0, start).split("\n").length;
  const short = (part: string) => part.replaceAll(/\s+/g, " ").slice(0, 100);
  return `${file}:${line} ${operator}: ${short(source.slice(start, end))} -> ${short(text)}`;
}
