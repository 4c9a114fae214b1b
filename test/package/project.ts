import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";
import { isInstalled, type Lockfile } from "../../tools/supply-chain/lockfile.ts";

export const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** Milliseconds for a package to be built, packed and installed on a busy machine. */
export const INSTALL_LIMIT = 180_000;

/** An empty project with a package of this repository, as npm installs it. */
export interface Project {
  readonly path: string;
  /** Paths of the files in the package. */
  readonly files: readonly string[];
  /** Bytes of the archive, and of its files. */
  readonly size: number;
  readonly unpackedSize: number;
  /** Names of all installed packages. */
  readonly installed: readonly string[];
  /** Runs JavaScript as a module of the project; `arg` is `process.argv[1]`. Returns what it prints. */
  node(script: string, arg: string, program?: string): Promise<string>;
  /** Compiles the programs in `consumer/<folder>` with strict options, including the declarations of their dependencies. */
  tsc(folder: string): Promise<void>;
}

/**
 * Packs the package in this folder as for publishing, and installs it with npm into an empty project, together with `others`. Versions of
 * dependencies are those of package-lock.json, which `npm ci` has stored in npm's cache.
 */
export async function installPackage(folder: string, others: readonly string[] = []): Promise<Project> {
  const path = join(inject("testDir"), `package-${randomUUID()}`);
  await mkdir(path);
  const pack = ["pack", "--json", "--silent", "--pack-destination", path];
  const [packed] = readPacked((await run("npm", pack, { cwd: join(ROOT, folder) })).stdout);
  await writeProject(path, { [packed.name]: `file:${packed.filename}` }, others);
  await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: path });
  const lock: Lockfile = JSON.parse(await readFile(join(path, "node_modules/.package-lock.json"), "utf8"));
  return {
    path,
    ...packed,
    files: packed.files.map((file) => file.path),
    installed: Object.keys(lock.packages).map((one) => one.replace(/^.*node_modules\//, "")),
    node: async (script, arg, program = process.execPath) =>
      (await run(program, ["--input-type=module", "--eval", script, arg], { cwd: path })).stdout,
    tsc: async (programs) => {
      await cp(join(import.meta.dirname, "consumer", programs), join(path, programs), { recursive: true });
      await run(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", programs], { cwd: path });
    },
  };
}

async function writeProject(path: string, own: Record<string, string>, others: readonly string[]): Promise<void> {
  const { packages }: Lockfile = JSON.parse(await readFile(join(ROOT, "package-lock.json"), "utf8"));
  const locked = Object.fromEntries(Object.entries(packages).filter(([name, { link }]) => isInstalled(name) && !link));
  const versions = others.map((name) => [name, locked[`node_modules/${name}`]?.version]);
  const dependencies = { ...own, ...Object.fromEntries(versions) };
  const lock = { lockfileVersion: 3, requires: true, packages: { "": { dependencies }, ...locked } };
  await writeFile(join(path, "package.json"), JSON.stringify({ private: true, type: "module", dependencies }));
  await writeFile(join(path, "package-lock.json"), JSON.stringify(lock));
}

interface Packed {
  readonly name: string;
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
  readonly size: number;
  readonly unpackedSize: number;
}

/** npm returns a list, or an object keyed by package name; scripts may print before it. */
function readPacked(stdout: string): [Packed] {
  const answer = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)));
  return [Array.isArray(answer) ? answer[0] : Object.values(answer)[0]];
}

/** Returns the program of the oldest Node from 20 on that is on the PATH. */
export async function oldestNode(): Promise<string> {
  const programs = (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, "node"));
  const found = await Promise.all(
    [process.execPath, ...programs].map(async (program) => {
      const version = await run(program, ["--version"]).catch(() => ({ stdout: "" }));
      return { program, major: Number(/^v(\d+)/.exec(version.stdout)?.[1] ?? 0) };
    }),
  );
  const [oldest] = found.filter(({ major }) => major >= 20).sort((one, other) => one.major - other.major);
  if (oldest === undefined) throw new Error("no Node 20 or later");
  return oldest.program;
}
