import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, inject, test } from "vitest";
import { run } from "../support/programs/run.ts";

const MAIN = resolve(import.meta.dirname, "main.ts");

/** A fake toolchain: prints a version and succeeds. */
async function fake(dir: string, program: string, version: string): Promise<void> {
  await writeFile(join(dir, program), `#!/bin/sh\necho '${version}'\n`);
  await chmod(join(dir, program), 0o755);
}

test("a missing or outdated toolchain is reported with what to install, before anything is started", async () => {
  const dir = join(inject("testDir"), "toolchains");
  await mkdir(dir);
  await fake(dir, "go", "go version go1.21.4 linux/amd64");
  await fake(dir, "bash", "GNU bash, version 5.2.15");
  await fake(dir, "curl", "curl 7.88.1");
  const { status, stderr, stdout } = await run({
    program: process.execPath,
    args: [MAIN],
    cwd: dir,
    env: { PATH: dir },
  });
  expect(stderr).toContain("go is version 1.21: install Go 1.26 or later");
  expect(stderr).toContain("python3 is missing, or incomplete: install Python 3.10 or later");
  expect(stderr).not.toMatch(/(bash|curl) is/);
  expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
});
