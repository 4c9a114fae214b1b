import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { chmod, mkdtemp, open, readFile, statfs } from "node:fs/promises";
import { cpus, release, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { SUITES, type Suite } from "./suites.ts";

/**
 * `npm run test:release`: runs every suite at full length, and writes each suite's commit, machine, duration and counts
 * to test/release/results.json, which is committed with a release. Names as further arguments choose suites; the results of the others stay.
 * `-- --gate` runs what `.ci/run` needs, with fixed seeds, and writes nothing.
 *
 * KEYHOLD_TEST_SEED  seed of all random choices of tests
 */

interface Result {
  readonly suite: string;
  readonly passed: boolean;
  readonly seconds: number;
  /** What the suite itself says that it has counted. */
  readonly counts: string;
}

/** Seeds of the gate: a failure is then caused by the change. */
const FIXED_SEEDS = {
  KEYHOLD_TEST_SEED: "20261125",
  KEYHOLD_HOSTILE_SEED: "1980929011",
};

/**
 * Milliseconds that `ROUNDS` of 4 clock cycles take on a slow machine, where all suites of the gate take hours: below 0.9 GHz. Seen: 280, at
 * 0.6 GHz.
 */
const SLOW = 180;
const ROUNDS = 40_000_000;

/** Lines in which suites say what they counted. */
const COUNTS =
  /^ *(?:Tests +.*passed.*|Total cases: .*|\d[\d,]* (?:passed|faults alone|scenarios|verifications|inputs|nodes).*)$/gm;

/** Lines that say what failed: a test and its error, a finding and its problems, a violation, a check. */
const FAILURES = /^ *(?:FAIL |\w*Error: |== .*KEYHOLD_|-- |violation: |unexpected: |FAILED ).*$/gm;

/**
 * Maximum numbers of these lines, and of their characters, that are printed again for each suite that failed: records of CI keep only the end
 * of the output.
 */
const MAX_LINES = 12;
const MAX_LENGTH = 240;

/** Bytes. Tests leave less than a tenth of it in their folders. */
const MIN_MEMORY = 8 * 2 ** 30;

const root = resolve(import.meta.dirname, "../..");
const isGate = process.argv.includes("--gate");
const chosen = process.argv.slice(2).filter((argument) => argument !== "--gate");
const unknown = chosen.find((name) => !SUITES.some((suite) => suite.name === name));
if (unknown !== undefined)
  throw new TypeError(`unknown suite ${unknown}; known: ${SUITES.map(({ name }) => name).join("; ")}`);
const suites = SUITES.filter(({ name, gate }) =>
  chosen.length === 0 ? !isGate || gate !== null : chosen.includes(name),
);
const commit = git("rev-parse", "HEAD");
const isClean = git("status", "--porcelain", "--", ".", ":!test/release/results.json") === "";
const logs = await mkdtemp(join(tmpdir(), "keyhold-suites-"));
const memory = await openMemory();
const start = performance.now();
const running = new Set<ChildProcess>();
// A suite has processes of its own, such as servers.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    for (const { pid } of running) if (pid !== undefined) process.kill(-pid, signal);
    process.exit(1);
  });
// Also after a signal: what is in memory would stay there.
process.once("exit", () => {
  for (const folder of [logs, memory ?? []].flat()) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
});
/** Says for each suite that failed what it was. */
const failures: string[] = [];

const results: Result[] = [];
const leftOut: string[] = [];
const isSlow = isGate && Math.min(...Array.from({ length: 5 }, timeOfRounds)) > SLOW;
const rest = suites.filter(({ isAlone }) => !isAlone);
await runAll(suites.filter(({ isAlone }) => isAlone));
// At full length, a suite has the machine to itself, as its bounds require. In the gate three run at a time, because many wait.
await Promise.all([runAll(rest), ...(isGate ? [runAll(rest, "pop"), runAll(rest, "pop")] : [])]);

const seconds = secondsSince(start);
for (const failure of failures) console.info(`\n${failure}`);
const failed = results.filter(({ passed }) => !passed);
for (const { suite, passed, seconds, counts } of results)
  console.info(`${passed ? "passed" : "FAILED"} ${String(seconds).padStart(5)} s  ${suite}: ${counts}`);
if (leftOut.length > 0)
  console.info(`This machine is slow: tests that failed were repeated. LEFT OUT: ${leftOut.join("; ")}`);
console.info(`${results.length} suites in ${Math.round(seconds / 6) / 10} min`);
const [good, bad] = [/(\d+) passed/, /(\d+) failed/].map((pattern) =>
  results.reduce((sum, { counts }) => sum + Number(pattern.exec(counts)?.[1] ?? 0), 0),
);
// A suite that counts no tests counts as one.
console.info(`${good} passed, ${Math.max(bad ?? 0, failed.length)} failed`);
process.exitCode = failed.length === 0 ? 0 : 1;

/** Takes suites from the beginning of the queue, or from its end, until it is empty. */
async function runAll(queue: Suite[], take: "shift" | "pop" = "shift"): Promise<void> {
  for (let suite = queue[take](); suite !== undefined; suite = queue[take]()) {
    if (isSlow && suite.runsIfSlow !== true) {
      leftOut.push(suite.name);
      continue;
    }
    const result = await runSuite(suite);
    results.push(result);
    if (!isGate) record(result);
  }
}

/** Returns the milliseconds of operations each of which needs the result of the one before it. */
function timeOfRounds(): number {
  const began = performance.now();
  let value = 1;
  for (let round = 0; round < ROUNDS; round++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
  // Without a use of the value, the loop could be removed.
  return Number.isInteger(value) ? performance.now() - began : 0;
}

/**
 * Creates a folder for temporary files in memory if there is room: databases of tests take a third less CPU time there, and only have to
 * survive processes.
 */
async function openMemory(): Promise<string | undefined> {
  const { bavail, bsize } = await statfs("/dev/shm").catch(() => ({ bavail: 0, bsize: 0 }));
  if (bavail * bsize < MIN_MEMORY) return undefined;
  const folder = await mkdtemp("/dev/shm/keyhold-");
  // PostgreSQL may run as another user.
  await chmod(folder, 0o1777);
  return folder;
}

/** Runs a suite, and prints its output when it has ended, since another may run beside it. */
async function runSuite({ name, command, gate, isInMemory, hasTimeLimits }: Suite): Promise<Result> {
  const [log, began] = [join(logs, name.replaceAll(/\W/g, "-")), performance.now()];
  console.info(`-- ${name}: begins`);
  const [program, ...args] = command;
  // Not a pipe: a process that exits loses what a pipe has not taken yet.
  const file = await open(log, "w");
  const child = spawn(program, args, {
    cwd: root,
    env: {
      ...process.env,
      ...(isGate ? { ...FIXED_SEEDS, ...(hasTimeLimits && { KEYHOLD_TEST_RETRIES: "1" }), ...gate } : {}),
      ...(isSlow && { KEYHOLD_TEST_RETRIES: "2" }),
      ...(isInMemory && memory !== undefined && { TMPDIR: memory }),
    },
    stdio: ["ignore", file.fd, file.fd],
    detached: true,
  });
  running.add(child);
  child.once("close", () => running.delete(child));
  const [status] = await once(child, "close");
  await file.close();
  const output = stripVTControlCharacters(await readFile(log, "utf8"));
  console.info(`\n== ${name}\n${output}`);
  if (status !== 0) {
    const lines = output.match(FAILURES) ?? output.trimEnd().split("\n").slice(-MAX_LINES);
    failures.push(
      [`failed: ${name}`, ...lines.slice(0, MAX_LINES).map((line) => line.slice(0, MAX_LENGTH))].join("\n"),
    );
  }
  const counts = [...output.matchAll(COUNTS)].map(([line]) => line.trim().replaceAll(/ +/g, " ")).join("; ");
  return { suite: name, passed: status === 0, seconds: secondsSince(began), counts };
}

/** Without a pause between reading and writing: another suite may end. */
function record({ suite, ...result }: Result): void {
  const [cpu] = cpus();
  const machine = {
    cpu: cpu?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
  };
  const date = new Date().toISOString();
  const path = join(import.meta.dirname, "results.json");
  const known: Record<string, object> = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  known[suite] = { ...result, commit, isClean, date, machine };
  writeFileSync(path, `${JSON.stringify(known, null, 2)}\n`);
}

function secondsSince(began: number): number {
  return Math.round((performance.now() - began) / 1000);
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
}
