import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { succeed } from "./run.ts";

/**
 * Creates a virtual environment in this folder with the packages of the first requirements file, which includes the others. It is
 * recreated only after a change of the files. Returns the path of its Python.
 */
export async function virtualEnvironment(
  folder: string,
  requirements: readonly [string, ...string[]],
): Promise<string> {
  const [file] = requirements;
  const cwd = dirname(file);
  const hash = createHash("sha256");
  for (const one of requirements) hash.update(await readFile(one));
  const dir = join(folder, `python-${hash.digest("hex").slice(0, 12)}`);
  const [python, whole] = [join(dir, "bin/python"), join(dir, "whole")];
  if (existsSync(whole)) return python;
  await mkdir(folder, { recursive: true });
  await succeed({ program: "python3", args: ["-m", "venv", "--clear", dir], cwd });
  await succeed({ program: python, args: ["-m", "pip", "install", "--quiet", "-r", file], cwd });
  await writeFile(whole, "");
  return python;
}
