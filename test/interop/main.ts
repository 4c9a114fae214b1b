import { run } from "../support/programs/run.ts";
import { missingToolchains } from "../support/programs/toolchains.ts";
import { runExamples } from "./examples.ts";
import { type Server, withServers } from "./servers.ts";
import { SUITES, type Suite } from "./suites.ts";
import { type Check, readTap } from "./tap.ts";

/**
 * `npm run test:interop`: clients in other languages, with their usual libraries, make all calls of a key's life cycle on live servers.
 * They are separate programs that get a URL and a token, and print TAP. `npm run test:interop -- Go examples` runs some of them.
 */

const missing = await missingToolchains(["go", "python3", "bash", "curl"]);
if (missing.length > 0) {
  console.error(`the tests in other languages need:\n${missing.join("\n")}`);
  process.exit(1);
}
const began = performance.now();
const checks = await withServers(async (plain, tls) => {
  const suites = SUITES.filter(({ name }) => isChosen(name));
  const results = suites.map((suite) => runSuite(suite, suite.supportsTls ? [plain, tls] : [plain]));
  const examples = isChosen("examples") ? runExamples(plain) : [];
  return (await Promise.all([...results, examples])).flat();
});
print(checks);
const failed = checks.filter(({ holds }) => !holds).length;
console.info(`\n${Math.round((performance.now() - began) / 1000)} s`);
console.info(`${checks.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 && checks.length > 0 ? 0 : 1;

function isChosen(name: string): boolean {
  const chosen = process.argv.slice(2);
  return chosen.length === 0 || chosen.includes(name);
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
