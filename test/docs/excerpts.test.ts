import { dirname } from "node:path";
import { expect, test } from "vitest";
import { type Page, parseBlocks, readPages } from "./blocks.ts";
import { examplesWith, readExamples } from "./excerpts.ts";

const examples = readExamples();
const excerpts = readPages().flatMap((page) =>
  page.blocks
    .filter(({ role }) => role === "excerpt")
    .map((block) => ({ ...block, page, place: `${page.name}:${block.line}` })),
);

test("there are excerpts and examples", () => {
  expect(excerpts.length).toBeGreaterThan(1);
  expect(examples.map(({ name }) => name)).toContain("examples/go/main.go");
});

test.for(excerpts)("$place shows lines of an example that the page links to", ({ text, page, place }) => {
  const names = examplesWith(text, examples);
  if (names.length === 0) throw new Error(`${place}: no example has these lines in a row:\n${text}`);
  const folders = names.map((name) => dirname(name).split("/").slice(0, 2).join("/"));
  expect(folders.filter((folder) => isLinked(page, folder))).not.toEqual([]);
});

function isLinked({ markdown }: Page, folder: string): boolean {
  return new RegExp(`\\]\\((?:\\.\\./)*${folder}[/)#]`).test(markdown);
}

const FILE = { name: "examples/x/main", text: "a:\n    b\n\n      c\nd\n" };

test.for([
  ["b\n\n  c", [FILE.name]],
  ["a:\n    b", [FILE.name]],
  ["    d\n", [FILE.name]],
  ["b\nc", []],
  ["b\n\nc", []],
  ["a:\nb", []],
  ["b c", []],
  ["e", []],
] as const)("of an example with indented lines, %j is found in %j", ([excerpt, found]) => {
  expect(examplesWith(excerpt, [FILE])).toEqual(found);
});

const CLIENTS = readPages().find(({ name }) => name === "docs/clients.md") ?? expect.unreachable();
const CREATES = /create_?issued_?api_?key\(|post\("keys"\)/i;
const VERIFIES = /verify_?api_?key\(|post\("verifications"/i;

test.for(["TypeScript", "Go", "Python", "Java", "Rust", "Browser"])(
  "the section %s verifies a key that it creates within twelve lines of a block",
  (language) => {
    const start = CLIENTS.markdown.indexOf(`\n## ${language}\n`);
    const [section = ""] = CLIENTS.markdown.slice(start + 1).split(/\n(?=## )/);
    const blocks = start < 0 ? [] : parseBlocks(section, language);
    const lines = blocks
      .map(({ text }) => text.slice(0, VERIFIES.exec(text)?.index ?? 0))
      .filter((t) => CREATES.test(t));
    expect(lines.map((text) => text.split("\n").length <= 12)).toContain(true);
  },
);
