import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import description from "../../package.json" with { type: "json" };

const LAUNCHER = resolve(import.meta.dirname, "../../src/cli/keyhold.js");

const keyhold = (...args: string[]) => promisify(execFile)(process.execPath, [LAUNCHER, ...args]);

test("the launcher runs the command, with and without the compile cache", async () => {
  for (const _ of ["first", "again"]) {
    expect(await keyhold("version")).toEqual({ stdout: `${description.version}\n`, stderr: "" });
  }
});

test("the launcher exits with the status of the command", async () => {
  await expect(keyhold("nonsense")).rejects.toMatchObject({ code: 2 });
});
