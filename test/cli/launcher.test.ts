import { execFile, execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import description from "../../package.json" with { type: "json" };

const LAUNCHER = resolve(import.meta.dirname, "../../src/cli/keyhold.js");

const MESSAGE =
  /^keyhold: Node\.js 24\.7 or later is required; this is (\d+\.\d+\.\d+) \(\/.+\)\. Run `npx keyhold` .*`npm install node`.*\n$/;

function versionOf(node: string): number {
  return Number(/\d+/.exec(execFileSync(node, ["--version"], { encoding: "utf8" })));
}

/** Every Node on the PATH that is too old. */
function oldNodes(): string[] {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "node")).filter((node) => existsSync(node) && versionOf(node) < 24);
}

/** This Node, with the version of another. */
const posingAs = (version: string) =>
  `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"${version}"}})`;

const runs: readonly (readonly string[])[] = [
  [process.execPath, "--import", posingAs("20.11.0"), LAUNCHER],
  [process.execPath, "--import", posingAs("24.6.1"), LAUNCHER],
  ...oldNodes().map((node) => [node, LAUNCHER]),
];

test.each(runs)("an old Node fails with the required version: %s", (node, ...args) => {
  for (const command of [["version"], ["--help"], ["serve"]]) {
    const { status, stdout, stderr } = spawnSync(node ?? "", [...args, ...command], { encoding: "utf8" });
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: expect.stringMatching(MESSAGE) });
  }
});

test.each(["24.7.0", "24.10.0", "25.0.0"])("Node %s is not too old", (version) => {
  const { status, stderr } = spawnSync(process.execPath, ["--import", posingAs(version), LAUNCHER, "version"]);
  expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
});

test("an old Node can parse the launcher, which prints the required version", () => {
  const source = readFileSync(LAUNCHER, "utf8");
  // A static import of a missing name fails before the first line runs, and top-level await is a syntax error before 14.8.
  expect(source).not.toMatch(/^(?:import|await)\b/m);
  expect(description.engines.node).toBe(`>=${/const NEEDED = "([\d.]+)";/.exec(source)?.[1]}`);
});

const keyhold = (...args: string[]) => promisify(execFile)(process.execPath, [LAUNCHER, ...args]);

test("the launcher runs the command, with and without the compile cache", async () => {
  for (const _ of ["first", "again"]) {
    expect(await keyhold("version")).toEqual({ stdout: `${description.version}\n`, stderr: "" });
  }
});

test("the launcher exits with the status of the command", async () => {
  await expect(keyhold("nonsense")).rejects.toMatchObject({ code: 2 });
});
