import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { run } from "../support/programs/run.ts";
import { EXAMPLE_PROGRAMS, EXAMPLES } from "./examples.ts";

const MAIN = resolve(import.meta.dirname, "main.ts");

/** A fake toolchain: prints a version and succeeds. */
async function fake(dir: string, program: string, version: string): Promise<void> {
  await writeFile(join(dir, program), `#!/bin/sh\necho '${version}'\n`);
  await chmod(join(dir, program), 0o755);
}

test("--require-all reports each missing or outdated toolchain with what to install, before anything is started", async () => {
  const dir = join(inject("testDir"), "toolchains");
  await mkdir(dir);
  await fake(dir, "go", "go version go1.21.4 linux/amd64");
  await fake(dir, "bash", "GNU bash, version 5.2.15");
  await fake(dir, "curl", "curl 7.88.1");
  const { status, stderr, stdout } = await interop(dir, "--require-all");
  expect(stderr).toContain("go is version 1.21: install Go 1.26 or later");
  expect(stderr).toContain("python3 is missing, or incomplete: install Python 3.11 or later");
  expect(stderr).not.toMatch(/(bash|curl) is/);
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
});

test("a suite without its toolchain is skipped with what to install, and a run of nothing else fails", async () => {
  const dir = join(inject("testDir"), "no-toolchains");
  await mkdir(dir);
  const { status, stdout } = await interop(dir, "Go", "Python");
  expect(stdout).toContain("skipped Go:\n  go is missing, or incomplete: install Go 1.26 or later");
  expect(stdout).toContain("skipped Python:\n  python3 is missing, or incomplete: install Python 3.11 or later");
  expect(stdout).toContain("0 passed, 0 failed, 2 skipped");
  expect(status).toBe(1);
});

test("every folder of examples/ is run", async () => {
  const folders = (await readdir(EXAMPLES, { withFileTypes: true })).filter((one) => one.isDirectory());
  expect(EXAMPLE_PROGRAMS.map(({ name }) => name).sort()).toEqual(folders.map(({ name }) => name).sort());
});

function interop(path: string, ...args: string[]) {
  return run({ program: process.execPath, args: [MAIN, ...args], cwd: path, env: { PATH: path } });
}
