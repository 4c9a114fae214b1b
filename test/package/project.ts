import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { inject } from "vitest";
import description from "../../package.json" with { type: "json" };

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** What the project has of its own beside the package. */
const OWN = ["typescript", "fastify", "express", "@types/express", "@types/node"];

/** An empty project in which the package is installed, but for its optional dependencies. */
export interface Project {
  readonly path: string;
  /** Paths of the files in the package. */
  readonly files: readonly string[];
  /** The program that the package has for this command. */
  bin(name: keyof typeof description.bin): string;
  /** Runs a JavaScript file of the project. */
  node(file: string, environment: Record<string, string>): Promise<string>;
  /** Compiles the project, strictly, the declarations of its dependencies too. */
  tsc(): Promise<void>;
}

/**
 * Packs the package as it is published and unpacks it where npm would. Of this checkout's dependencies the project gets those that the
 * package names, and those alone: what it needs and does not name is not found.
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

/** npm answers a list, or an object by the name of the package; scripts may write before it. */
function readPacked(stdout: string): [Packed] {
  const answer = JSON.parse(stdout.slice(stdout.search(/^[[{]/m)));
  return [Array.isArray(answer) ? answer[0] : Object.values(answer)[0]];
}
