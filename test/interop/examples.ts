import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { cargoTarget } from "../support/programs/caches.ts";
import { run } from "../support/programs/run.ts";
import { checkWatchers } from "./audit-watchers.ts";
import { drivePage } from "./example-page.ts";
import { checkKeyPage } from "./key-page-example.ts";
import { checkProtectedService } from "./protected-service.ts";
import { checkResourceServer } from "./resource-server.ts";
import type { Server } from "./servers.ts";
import type { Check } from "./tap.ts";
import { checkUsagePage } from "./usage-page.ts";
import { checkReceiver } from "./webhook-receivers.ts";

export const EXAMPLES = resolve(import.meta.dirname, "../../examples");

/** The output of the commands of an example: each state of its key. */
const WANTED =
  /^issued [-0-9a-f]{36}\nthe secret is valid: true\nthe JWT is valid: true\nafter the revocation: \w*REVOKED\n$/i;

export interface Example {
  /** Its folder. */
  readonly name: string;
  /** Programs that must be installed (`toolchains.ts`). */
  readonly needs: readonly string[];
}

/** Every folder of `examples/`. */
export const EXAMPLE_PROGRAMS: readonly Example[] = [
  { name: "audit-stream", needs: ["bash", "go", "python3"] },
  { name: "browser", needs: ["bash", "chromium"] },
  { name: "curl", needs: ["bash", "curl"] },
  { name: "go", needs: ["bash", "go"] },
  { name: "java", needs: ["bash", "javac", "mvn"] },
  { name: "key-page", needs: ["bash", "chromium"] },
  { name: "python", needs: ["bash", "python3"] },
  { name: "rust", needs: ["bash", "cargo"] },
  { name: "spring", needs: ["bash", "javac", "mvn"] },
  { name: "spring-jwt", needs: ["bash", "javac", "mvn"] },
  { name: "typescript", needs: ["bash"] },
  { name: "usage", needs: ["bash"] },
  { name: "webhooks", needs: ["bash", "go", "python3"] },
];

/**
 * Runs the commands of an example's README unchanged, in its folder. A block `sh service` starts a web service that is protected by
 * Keyhold (`protected-service.ts`), `sh jwt service` one that verifies JWTs of ES256 offline (`resource-server.ts`), and `sh page` a page
 * for browsers, which does what the other programs do (`example-page.ts`). Each block `sh receiver` starts a receiver of webhooks, and `sh watcher` one of the
 * audit log. `sh usage page` starts a page with the usage of a customer, and `sh key page` an application that embeds the key page
 * (`key-page-example.ts`).
 */
export async function runExample({ name }: Example, live: Server, es256: Server): Promise<readonly Check[]> {
  const server = { ...live, env: { CARGO_TARGET_DIR: cargoTarget, ...live.env } };
  const cwd = join(EXAMPLES, name);
  const readme = await readFile(join(cwd, "README.md"), "utf8");
  const commands = scriptOf(readme, "sh");
  const page = scriptOf(readme, "sh page");
  const usagePage = scriptOf(readme, "sh usage page");
  const keyPage = scriptOf(readme, "sh key page");
  const service = scriptOf(readme, "sh service");
  const jwtService = scriptOf(readme, "sh jwt service");
  const receivers = blocksOf(readme, "sh receiver");
  const watchers = blocksOf(readme, "sh watcher");
  if (
    [commands, page, usagePage, keyPage, service, jwtService].every((script) => script === null) &&
    [...receivers, ...watchers].length === 0
  )
    throw new Error(`examples/${name}/README.md has no commands`);
  return [
    ...(commands === null ? [] : [await runCommands(name, commands, cwd, server)]),
    ...(page === null ? [] : [await runPage(name, page, cwd, server)]),
    ...(usagePage === null ? [] : [await checkUsagePage(name, usagePage, cwd, server)]),
    ...(keyPage === null ? [] : [await checkKeyPage(name, keyPage, cwd, server)]),
    ...(service === null ? [] : await checkProtectedService(`example ${name}`, service, cwd, server)),
    ...(jwtService === null ? [] : await checkResourceServer(`example ${name}`, jwtService, cwd, es256)),
    ...(await Array.fromAsync(receivers, (script) => checkReceiver(`set -euo pipefail\n${script}`, cwd))).flat(),
    ...(await checkWatchers(watchers, cwd, server)),
  ];
}

/** Returns the blocks of this kind as one script. */
function scriptOf(readme: string, info: string): string | null {
  const blocks = blocksOf(readme, info);
  return blocks.length === 0 ? null : ["set -euo pipefail", ...blocks].join("\n");
}

function blocksOf(readme: string, info: string): readonly string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${info}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, block = ""]) => block);
}

async function runPage(name: string, script: string, cwd: string, server: Server): Promise<Check> {
  const shown = await drivePage(script, cwd, server).catch(String);
  return { name: `example ${name}: life of a key`, holds: WANTED.test(shown), comment: shown };
}

async function runCommands(name: string, script: string, cwd: string, { env }: Server): Promise<Check> {
  const { status, stdout, stderr } = await run({ program: "bash", args: ["-c", script], cwd, env });
  // Maven resets the style of the terminal, even if there is none.
  const holds = status === 0 && WANTED.test(stripVTControlCharacters(stdout));
  return { name: `example ${name}: life of a key`, holds, comment: `exit status ${status}\n${stdout}${stderr}` };
}
