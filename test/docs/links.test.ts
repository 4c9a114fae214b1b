import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { ROOT, readPages } from "./blocks.ts";

/** Pages without blocks, whose links are checked. */
const OTHERS = ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/README.md", "examples/README.md"];

const names = [...readPages().map(({ name }) => name), ...OTHERS];
const pages = new Map(names.map((name) => [name, readFileSync(join(ROOT, name), "utf8")]));

/** Returns the anchor of a heading, like GitHub. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

function anchorsOf(markdown = ""): string[] {
  return [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => anchorOf(heading));
}

/** Returns the errors of a link within the project; none for external links. */
function broken(name: string, link: string): string[] {
  if (/^https?:/.test(link)) return [];
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? name : relative(ROOT, join(ROOT, dirname(name), path));
  if (!existsSync(join(ROOT, target))) return [`${name}: there is no ${target}`];
  if (anchor === undefined || anchorsOf(pages.get(target)).includes(anchor)) return [];
  return [`${name}: ${target} has no heading #${anchor}`];
}

test("links between the pages have a target", () => {
  const links = [...pages].flatMap(([name, text]) =>
    [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => [name, link] as const),
  );
  expect(links.length).toBeGreaterThan(30);
  expect(links.flatMap(([name, link]) => broken(name, link))).toEqual([]);
});

const PATH_IN_CODE = /`((?:bench|deploy|docs|examples|gen|proto|src|test|tools)\/[\w./-]+)`/g;

test("files and folders named by a page exist", () => {
  const named = [...pages].flatMap(([name, text]) =>
    [...text.matchAll(PATH_IN_CODE)].map(([, path = ""]) => ({ name, path })),
  );
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter(({ path }) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("files of src/ named by the page on architecture exist", () => {
  const named = [...(pages.get("docs/architecture.md") ?? "").matchAll(/`([\w-]+\/[\w./-]+\.ts)`/g)].map(
    ([, path = ""]) => path,
  );
  expect(named.length).toBeGreaterThan(30);
  const isThere = (path: string) => ["src", "."].some((folder) => existsSync(join(ROOT, folder, path)));
  expect(named.filter((path) => !isThere(path))).toEqual([]);
});
