import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Block, isRun, type Page, ROOT } from "./blocks.ts";

/** The environment of a page. */
export interface Place {
  /** A folder in the checkout, so that a program can import the package by its name. */
  readonly dir: string;
  /** URL of a server without authentication, for the blocks before the page starts its own. */
  readonly url: string;
  /** Replacements of texts of the page. */
  readonly replaced: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
}

export interface Ran {
  readonly block: Block;
  /** Stdout. */
  readonly output: string;
}

/** Pages show the default host and port; `moved` replaces them with those of the current server. */
const PRELUDE = `set -euo pipefail
here=\${KEYHOLD_URL#*//}
moved() { sed "s|127[.]0[.]0[.]1:4420|$here|g" "$1"; }`;

/**
 * Runs the blocks of a page in order, in one shell. Throws with the content of stderr when one of them fails. Stops on
 * the signal, and leaves no process running.
 */
export async function runPage(page: Page, place: Place, signal: AbortSignal): Promise<Ran[]> {
  const mark = `--- ${randomUUID()} `;
  const blocks = page.blocks.filter(isRun);
  const ended = await runScript(scriptOf(blocks, place, mark), place, signal);
  const outputs = ended.stdout.split(mark).slice(1);
  const ran = outputs.map((output, index) => ({ block: blockAt(blocks, index), output: output.replace(/^.*\n/, "") }));
  if (ended.code === 0 && ran.length === blocks.length) return ran;
  const last = ran.at(-1);
  throw new Error(
    `${page.name}:${last?.block.line ?? 0}: the block failed with ${ended.code}\n${ended.stderr}\n${last?.output ?? ""}`,
  );
}

function blockAt(blocks: readonly Block[], index: number): Block {
  const block = blocks[index];
  if (block === undefined) throw new Error("more outputs than blocks");
  return block;
}

/** Stops servers gracefully; a killed one would leave a database to recover. */
const END = "trap '' TERM; kill -TERM 0; wait";

/** Returns one script of all blocks; each prints a line that separates its output from that of the previous one. */
function scriptOf(blocks: readonly Block[], place: Place, mark: string): string {
  return [PRELUDE, ...blocks.map((block) => `echo '${mark}'\n${stepOf(block, place)}`), END].join("\n");
}

/** A block is read right before it runs, when the URL of the server is known. */
function stepOf(block: Block, { dir, replaced }: Place): string {
  const file = join(dir, `line-${block.line}-${randomUUID()}`);
  writeFileSync(file, replaceAll(block.text, replaced));
  if (block.role === "program") return `moved '${file}' > '${file}.ts'; node '${file}.ts'`;
  return block.role === "server" ? serverStep(file) : `. <(moved '${file}')`;
}

/** Starts a server and waits for the log line with its address; it stops with the page. */
function serverStep(file: string): string {
  return `exec {log}< <(. <(moved '${file}'))
until read -r line <&$log || { echo 'the server did not start' >&2; exit 1; }; [[ $line =~ \\"url\\":\\"(http[^\\"]*) ]]; do
  echo "$line" >&2
done
export KEYHOLD_URL=\${BASH_REMATCH[1]}
here=\${KEYHOLD_URL#*//}
cat <&$log >/dev/null &`;
}

function replaceAll(code: string, replaced: Readonly<Record<string, string>>): string {
  return Object.entries(replaced).reduce((rest, [shown, real]) => rest.replaceAll(shown, real), code);
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs in a separate process group, which is killed afterwards. */
async function runScript(script: string, { environment, url }: Place, signal: AbortSignal): Promise<Ended> {
  const child = spawn("bash", ["-c", script], {
    cwd: ROOT,
    // Pages assume two variables: servers use a free port, and the command finds the current server.
    env: { ...inherited(), ...environment, KEYHOLD_PORT: "0", KEYHOLD_URL: url },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const kill = () => killGroup(child.pid);
  child.once("exit", kill);
  signal.addEventListener("abort", kill);
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code, stdout, stderr };
}

/** Servers that the script has started keep its output open. */
function killGroup(group: number | undefined): void {
  try {
    if (group !== undefined) process.kill(-group, "SIGKILL");
  } catch {
    // The group has no processes.
  }
}

/** Removes variables of the test environment that a reader does not have. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("KEYHOLD_")));
}
