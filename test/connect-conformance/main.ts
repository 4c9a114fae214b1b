import { join, resolve } from "node:path";
import { type Command, run, succeed } from "../support/programs/run.ts";
import { missingToolchains } from "../support/programs/toolchains.ts";

/**
 * `npm run test:conformance`: runs the conformance suite of Connect, gRPC and gRPC-Web (https://github.com/connectrpc/conformance)
 * against a server with Keyhold's transport and the suite's own service, once with its unary method on the fast path and once without.
 * Arguments are passed to the suite's runner, such as `-- --run '**\/unary/**' --trace`.
 */

const here = import.meta.dirname;
const root = resolve(here, "../..");
const cache = join(root, "node_modules/.cache/keyhold-conformance");
const bin = join(root, "node_modules/.bin");

const VERSION = "v1.0.7";

/** Number of concurrent servers: the runner waits 10 s for each to start, which is short on a busy machine. */
const MAX_SERVERS = 2;

const missing = await missingToolchains(["go"]);
if (missing.length > 0) {
  console.error(`the conformance suite needs more:\n${missing.join("\n")}`);
  process.exit(1);
}
const runner = await build();
const results = [await test(false), await test(true)];
process.exitCode = results.every(Boolean) ? 0 : 1;

/** Runs the suite. Returns whether all its cases have passed and the fast path was used as expected. */
async function test(fastPath: boolean): Promise<boolean> {
  const { status, stdout, stderr } = await run(suite(runner, fastPath));
  const counts = [...stderr.matchAll(/^fast calls: (\d+)$/gm)].map(([, count]) => Number(count));
  const fastCalls = counts.reduce((sum, count) => sum + count, 0);
  const holds = status === 0 && fastCalls > 0 === fastPath;
  console.info(`fast path ${fastPath ? "on" : "off"}: ${fastCalls} calls used it`);
  console.info(holds ? stdout.slice(stdout.lastIndexOf("Total cases")) : stdout + stderr);
  return holds;
}

/** Builds the runner, generates its service in TypeScript and type-checks the server. Returns the path of the runner. */
async function build(): Promise<string> {
  const go = (...args: string[]) => succeed({ program: "go", args, cwd: here, env: { GOBIN: cache } });
  // The module's own go.mod pins its dependencies.
  await go("install", `connectrpc.com/conformance/cmd/connectconformance@${VERSION}`);
  const module = JSON.parse(await go("mod", "download", "-json", `connectrpc.com/conformance@${VERSION}`));
  await succeed({ program: join(bin, "buf"), args: ["generate", join(module.Dir, "proto")], cwd: here });
  await succeed({ program: join(bin, "tsc"), args: ["--project", "server"], cwd: here });
  return join(cache, "connectconformance");
}

function suite(program: string, fastPath: boolean): Command {
  const server = [join(bin, "node"), "server/main.ts", ...(fastPath ? ["--fast-path"] : [])];
  const options = ["--mode", "server", "--conf", "config.yaml", "--known-failing", "@known-failing.txt"];
  return {
    program,
    args: [...options, "--max-servers", `${MAX_SERVERS}`, ...process.argv.slice(2), "--", ...server],
    cwd: here,
    // The cache matters, since servers start about 30 times.
    env: { NODE_COMPILE_CACHE: join(cache, "compiled") },
  };
}
