import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { run } from "../support/programs/run.ts";
import type { Server } from "./servers.ts";
import type { Check } from "./tap.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../examples");

/** The output of every example: each state of its key. */
const WANTED =
  /^issued [-0-9a-f]{36}\nthe secret is valid: true\nthe JWT is valid: true\nafter the revocation: \w*REVOKED\n$/i;

/** Runs the commands of every example's README unchanged, in its folder. */
export async function runExamples({ env }: Server): Promise<readonly Check[]> {
  const folders = await readdir(EXAMPLES, { withFileTypes: true });
  return Promise.all(folders.filter((one) => one.isDirectory()).map(({ name }) => runExample(name, env)));
}

async function runExample(name: string, env: Server["env"]): Promise<Check> {
  const cwd = join(EXAMPLES, name);
  const readme = await readFile(join(cwd, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
  const script = ["set -euo pipefail", ...blocks].join("\n");
  const { status, stdout, stderr } = await run({ program: "bash", args: ["-c", script], cwd, env });
  const holds = status === 0 && blocks.length > 0 && WANTED.test(stdout);
  return { name: `example: ${name}`, holds, comment: `exit status ${status}\n${stdout}${stderr}` };
}
