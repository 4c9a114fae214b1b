import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ROOT, readPages } from "./blocks.ts";

test("programs in the docs compile with the strict options of the project", async () => {
  const dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const programs = readPages().flatMap(({ name, blocks }) =>
    blocks
      .filter(({ role }) => role === "program")
      .map(({ line, text }) => ({ file: `${name.replaceAll("/", "-")}-${line}.ts`, text: `export {};${text}` })),
  );
  expect(programs.length).toBeGreaterThan(0);
  for (const { file, text } of programs) writeFileSync(join(dir, file), text);
  const config = { extends: relative(dir, join(ROOT, "tsconfig.json")), include: ["*.ts"] };
  writeFileSync(join(dir, "tsconfig.json"), JSON.stringify(config));
  const { stdout } = await promisify(execFile)(join(ROOT, "node_modules/.bin/tsc"), [
    "-p",
    dir,
    "--pretty",
    "false",
  ]).catch((error) => error);
  expect(stdout).toBe("");
});
