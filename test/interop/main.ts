import { parseArgs } from "node:util";
import { run } from "../support/programs/run.ts";
import { missingToolchains } from "../support/programs/toolchains.ts";
import { EXAMPLE_PROGRAMS, runExample } from "./examples.ts";
import { type Server, withServers } from "./servers.ts";
import { SUITES, type Suite } from "./suites.ts";
import { type Check, readTap } from "./tap.ts";

/**
 * `npm run test:interop`: clients in other languages call live servers with the libraries of their languages. They are separate programs
 * that get a URL and a token, and print TAP. `npm run test:interop -- Go examples` runs some of them, as does
 * KEYHOLD_INTEROP_ONLY=Go,examples. Those whose toolchain is not installed are skipped; with `--require-all`, the run fails instead.
 */

/** Parts that run at the same time, beside one that uses Maven: its processes may not share their repository while they download. */
const CONCURRENCY = 2;

interface Part {
  readonly name: string;
  readonly needs: readonly string[];
  run(plain: Server, tls: Server): Promise<readonly Check[]>;
}

const PARTS: readonly Part[] = [
  ...SUITES.map((suite) => ({
    ...suite,
    run: (plain: Server, tls: Server) => runSuite(suite, suite.supportsTls ? [plain, tls] : [plain]),
  })),
  ...EXAMPLE_PROGRAMS.map((example) => ({
    name: `example ${example.name}`,
    needs: example.needs,
    run: (plain: Server, tls: Server) => runExample(example, plain, tls),
  })),
];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "require-all": { type: "boolean", default: false } },
});
const chosen = positionals.length > 0 ? positionals : (process.env.KEYHOLD_INTEROP_ONLY?.split(",") ?? []);
const parts = PARTS.filter(({ name }) => isChosen(name));
const missing = await Promise.all(parts.map(({ needs }) => missingToolchains(needs)));
const runnable = parts.filter((_, index) => missing[index]?.length === 0);
if (values["require-all"] && runnable.length < parts.length) {
  console.error(`the tests in other languages need:\n${[...new Set(missing.flat())].join("\n")}`);
  process.exit(1);
}
// Services that were started in process groups of their own end with this process.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
const began = performance.now();
const checks = runnable.length === 0 ? [] : await withServers((plain, tls) => runAll(runnable, plain, tls));
print(checks);
for (const [index, { name }] of parts.entries()) {
  const problems = missing[index] ?? [];
  if (problems.length > 0) console.info(`skipped ${name}:\n${problems.join("\n")}`);
}
const failed = checks.filter(({ holds }) => !holds).length;
console.info(`\n${Math.round((performance.now() - began) / 1000)} s`);
console.info(`${checks.length - failed} passed, ${failed} failed, ${parts.length - runnable.length} skipped`);
process.exitCode = failed === 0 && checks.length > 0 ? 0 : 1;

/** `examples` chooses all examples, `example go` one of them. */
function isChosen(name: string): boolean {
  return chosen.length === 0 || chosen.includes(name) || (name.startsWith("example ") && chosen.includes("examples"));
}

/** Runs the parts in their order, some at the same time. */
async function runAll(all: readonly Part[], plain: Server, tls: Server): Promise<readonly Check[]> {
  const usesMaven = ({ needs }: Part) => needs.includes("mvn");
  const others = all.filter((part) => !usesMaven(part)).values();
  const results: Check[] = [];
  const work = async (queue: Iterable<Part>) => {
    for (const part of queue) {
      const start = performance.now();
      const broken = (error: unknown) => [{ name: `${part.name}: runs`, holds: false, comment: String(error) }];
      results.push(...(await part.run(plain, tls).catch(broken)));
      console.info(`${part.name}: ${Math.round((performance.now() - start) / 1000)} s`);
    }
  };
  await Promise.all([work(all.filter(usesMaven)), ...Array.from({ length: CONCURRENCY }, () => work(others))]);
  return results;
}

async function runSuite(suite: Suite, servers: readonly Server[]): Promise<readonly Check[]> {
  try {
    const command = await suite.prepare();
    const runs = servers.map(async ({ name, env }) => {
      const found = readTap(await run({ ...command, env: { ...command.env, ...env } }));
      return found.map((check) => ({ ...check, name: `${suite.name}, ${name}: ${check.name}` }));
    });
    return (await Promise.all(runs)).flat();
  } catch (error) {
    return [{ name: `${suite.name}: builds`, holds: false, comment: String(error) }];
  }
}

function print(checks: readonly Check[]): void {
  for (const { name, holds, comment } of checks) {
    console.info(`${holds ? "ok    " : "FAILED"} ${name}`);
    if (!holds) console.info(`       ${comment.replaceAll("\n", "\n       ")}`);
  }
}
