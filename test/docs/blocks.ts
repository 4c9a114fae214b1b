import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/**
 * How a fenced block is processed, by the words after its fence. Other words are an error.
 *
 * - `command` runs to its end, in one shell with the other blocks of its page.
 * - `server` runs in the background, and the blocks after it call that server.
 * - `program` is run by Node.
 * - `output` is what the block before it must print (`output.ts`).
 * - `statements` are run by a superuser of PostgreSQL (`statements.test.ts`).
 * - `export` is a query that exports keys from another product's database (`test/cli/import/tables.test.ts`).
 * - `scanner` holds rules for a secret scanner.
 * - `excerpt` consists of lines of a file below `examples/` or `test/interop/`, which `npm run test:interop` runs
 *   (`excerpts.test.ts`).
 * - `picture` is not run.
 */
const ROLES = {
  sh: "command",
  "sh server": "server",
  ts: "program",
  "json output": "output",
  "text output": "output",
  sql: "statements",
  "sql mysql": "export",
  "sql postgres": "export",
  "text pattern": "scanner",
  toml: "scanner",
  yaml: "scanner",
  text: "picture",
  mermaid: "picture",
  "go excerpt": "excerpt",
  "html excerpt": "excerpt",
  "java excerpt": "excerpt",
  "js excerpt": "excerpt",
  "properties excerpt": "excerpt",
  "python excerpt": "excerpt",
  "rust excerpt": "excerpt",
  "sh excerpt": "excerpt",
  "toml excerpt": "excerpt",
  "ts excerpt": "excerpt",
  "xml excerpt": "excerpt",
} as const;

export type Role = (typeof ROLES)[keyof typeof ROLES];

/** Whether a block is executed with its page. */
export function isRun({ role }: Pick<Block, "role">): boolean {
  return role === "command" || role === "server" || role === "program";
}

export interface Block {
  /** Line of the fence, from 1. */
  readonly line: number;
  /** Words after the fence, such as `sh server`. */
  readonly info: string;
  readonly role: Role;
  readonly text: string;
}

export interface Page {
  /** Such as `docs/quick-start.md`. */
  readonly name: string;
  readonly markdown: string;
  readonly blocks: readonly Block[];
}

/** README.md, that of the client's package, and every page below docs/. */
export function readPages(): Page[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => join(ROOT, "docs", file));
  return [join(ROOT, "README.md"), join(ROOT, "packages/client/README.md"), ...docs.sort()].map((file) =>
    readPage(relative(ROOT, file)),
  );
}

/** `name` is the path from the root of the project. */
export function readPage(name: string): Page {
  const markdown = readFileSync(join(ROOT, name), "utf8");
  return { name, markdown, blocks: parseBlocks(markdown, name) };
}

/** Returns the fenced blocks of a page. Throws for a fence with other words or without an end. */
export function parseBlocks(markdown: string, name: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; info: string; text: string } | undefined;
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = /^\s*(?:```|~~~)(.*)$/.exec(line);
    if (fence === null) {
      if (open !== undefined) open.text += `${line}\n`;
    } else if (open === undefined) {
      open = { line: index + 1, info: fence[1]?.trim() ?? "", text: "" };
    } else {
      blocks.push({ ...open, role: roleOf(open.info, `${name}:${open.line}`) });
      open = undefined;
    }
  }
  if (open !== undefined) throw new Error(`${name}:${open.line}: the block is not closed`);
  return blocks;
}

function roleOf(info: string, place: string): Role {
  const role = Object.entries(ROLES).find(([words]) => words === info)?.[1];
  if (role === undefined) throw new Error(`${place}: a block must be one of ${Object.keys(ROLES).join(", ")}`);
  return role;
}
