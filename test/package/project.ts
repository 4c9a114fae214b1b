import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";
import description from "../../package.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** Packages that the project has in addition. */
const OWN = ["typescript", "fastify", "express", "@types/express", "@types/node"];

/** An empty project with the package and without its optional dependencies. */
export interface Project {
  readonly path: string;
  /** Paths of the files in the package. */
  readonly files: readonly string[];
  /** Returns the package's program for this command. */
  bin(name: keyof typeof description.bin): string;
  /** Runs a JavaScript file of the project. */
  node(file: string, environment: Record<string, string>): Promise<string>;
  /** Compiles the project with strict options, including the declarations of its dependencies. */
  tsc(): Promise<void>;
}

/**
 * Packs the package as for publishing and unpacks it like npm. The project gets exactly those of this checkout's dependencies that the
 * package declares, so that an undeclared one is missing.
 */
export async function installPackage(): Promise<Project> {
  const path = join(inject("testDir"), `package-${randomUUID()}`);
  const modules = join(path, "node_modules");
  await mkdir(join(modules, "keyhold"), { recursive: true });
  const { stdout } = await run("npm", ["pack", "--json", "--silent", "--pack-destination", path], { cwd: ROOT });
  const [packed] = readPacked(stdout);
  await run("tar", ["-xzf", join(path, packed.filename), "--strip-components=1", "-C", join(modules, "keyhold")]);
  for (const name of new Set([...Object.keys(description.dependencies), ...OWN])) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  await cp(join(import.meta.dirname, "consumer"), path, { recursive: true });
  await writeFile(join(path, "package.json"), '{ "private": true, "type": "module" }');
  return {
    path,
    files: packed.files.map((file) => file.path),
    bin: (name) => join(modules, "keyhold", description.bin[name]),
    node: async (file, env) => (await run(process.execPath, [join(path, file)], { cwd: path, env })).stdout,
    tsc: async () => {
      await run(process.execPath, [join(modules, "typescript/bin/tsc")], { cwd: path });
    },
  };
}

type Packed = { readonly filename: string; readonly files: readonly { readonly path: string }[] };

/** npm returns a list, or an object keyed by package name; scripts may print before it. */
function readPacked(stdout: string): [Packed] {
  const answer = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)));
  return [Array.isArray(answer) ? answer[0] : Object.values(answer)[0]];
}
