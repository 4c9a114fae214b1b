import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { digestOf } from "../../src/server/version.ts";

const PROGRAM = { "a.ts": "1", "b/c.js": "2", "b/d.sql": "3" };

async function buildOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(inject("testDir"), "build-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "b"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return digestOf(pathToFileURL(`${folder}/`));
}

test("two builds differ if a file of the program has another content, or is added, missing or renamed", async () => {
  const { "b/d.sql": sql, ...less } = PROGRAM;
  const builds = [
    ...[PROGRAM, less, { ...less, "b/e.sql": sql }, { ...PROGRAM, "b/e.sql": sql }],
    ...Object.keys(PROGRAM).map((name) => ({ ...PROGRAM, [name]: "4" })),
  ];
  expect(new Set(await Promise.all(builds.map(buildOf))).size).toBe(builds.length);
});

test("a build is 12 hexadecimal digits, which files of other types do not change", async () => {
  const build = await buildOf(PROGRAM);
  expect(build).toMatch(/^[\da-f]{12}$/);
  expect(await buildOf({ ...PROGRAM, "b/readme.md": "5", "b/f.ts.map": "6" })).toBe(build);
});
