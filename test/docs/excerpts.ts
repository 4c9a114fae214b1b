import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./blocks.ts";

/** `npm run test:interop` runs the programs in them. */
const FOLDERS = ["examples", "test/interop/openapi", "test/interop/java/src", "test/interop/python"];

/** What the examples generate, build and install. */
const MADE = /(?:^|\/)(?:\.venv|__pycache__|dist|gen|generated|node_modules|target)\//;

export interface Example {
  /** Such as `examples/go/main.go`. */
  readonly name: string;
  readonly text: string;
}

/** The files in these folders that were written by hand. */
export function readExamples(): Example[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((file) => join(folder, file)),
  )
    .filter((name) => !MADE.test(name) && statSync(join(ROOT, name)).isFile())
    .map((name) => ({ name, text: readFileSync(join(ROOT, name), "utf8") }));
}

/** Returns the names of the examples that contain the lines of the excerpt in a row, apart from common indentation. */
export function examplesWith(excerpt: string, examples: readonly Example[]): string[] {
  const wanted = dedent(excerpt.trimEnd().split("\n"));
  return examples.filter(({ text }) => hasLines(text.split("\n"), wanted)).map(({ name }) => name);
}

function hasLines(lines: readonly string[], wanted: string): boolean {
  const count = wanted.split("\n").length;
  return lines.some((_, start) => dedent(lines.slice(start, start + count)) === wanted);
}

/** Removes the white space that all lines begin with, other than empty ones. */
function dedent(lines: readonly string[]): string {
  const starts = lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const common = Math.min(...starts);
  return lines.map((line) => line.slice(common)).join("\n");
}
