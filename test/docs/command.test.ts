import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { nodesOf } from "../../src/cli/completion.ts";
import { EXIT_STATUS } from "../../src/cli/exit-status.ts";
import { createProgram } from "../../src/cli/program.ts";
import { ROOT } from "./blocks.ts";

const page = readFileSync(resolve(ROOT, "docs/command.md"), "utf8");

/** Returns the first cells of table rows that match. */
function cells(beginning: RegExp): string[] {
  return [...page.matchAll(/^\| (.*?) \|.*\|$/gm)].map(([, cell = ""]) => cell).filter((cell) => beginning.test(cell));
}

/** Expands `keys issue`, `list` to `keys issue` and `keys list`, without options and arguments. */
function commandsIn(cell: string): string[] {
  const spans = [...cell.matchAll(/`([^`]+)`/g)].map(([, span = ""]) => span.replace(/ (?:--|[A-Z]).*$/, ""));
  const group = spans[0]?.split(" ").slice(0, -1).join(" ");
  return spans.map((span) => (span.includes(" ") || !group ? span : `${group} ${span}`));
}

test("docs/command.md lists exactly the commands", () => {
  const nodes = nodesOf(createProgram()).map(({ path }) => path);
  const leaves = nodes.filter((path) => path !== "" && !nodes.some((other) => other.startsWith(`${path} `)));
  const documented = new Set(cells(/^`/).flatMap(commandsIn));
  expect([...documented].sort()).toEqual(leaves.sort());
});

test("docs/command.md documents every exit status", () => {
  expect(cells(/^\d/).map(Number).sort()).toEqual(Object.values(EXIT_STATUS).sort());
});
