import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { ROOT } from "./blocks.ts";

const PAGE = await readFile(resolve(ROOT, "docs/clients.md"), "utf8");

const ROW = /^\| (.*`.+`.*) \| (\w+) \| ((?:yes|\*\*no\*\*) \| (?:yes|\*\*no\*\*)) \| \[.+\]\((.+)\) \|$/;
const [, TABLE = ""] = /^\| Library \| Language \| EdDSA \| ES256 \| Tested in \|\n.+\n((?:\|.+\n)+)/m.exec(PAGE) ?? [];

/** Names of libraries, the algorithms as `yes | **no**`, and the test that uses the libraries. */
const ROWS = TABLE.trimEnd()
  .split("\n")
  .map((row) => {
    const [, name = "", language = "", algorithms = "", link = ""] = ROW.exec(row) ?? expect.fail(`not a row: ${row}`);
    const libraries = [...name.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one);
    return { name: name.replaceAll("`", ""), language, algorithms, libraries, file: resolve(ROOT, "docs", link) };
  });

test("each library has one row per language", () => {
  const names = ROWS.map(({ name, language }) => `${name} | ${language}`);
  expect(names).toEqual([...new Set(names)]);
});

test.for(table(ROWS))("the test of $libraries uses them", async ({ libraries, file }) => {
  const source = await readFile(file, "utf8");
  // The test of our own package is beside its source.
  const names = libraries.map((name) => (name === "@keyhold/client/verifier" ? "createTokenVerifier" : name));
  for (const name of names) expect(source.toLowerCase()).toContain(name.toLowerCase());
});

/** Suites with a list of libraries and of the algorithms that each supports, which they assert. */
const SUITES = {
  "test/interop/java/src/main/java/interop/JwtLibraries.java": /new Library\(\s*"(.+)", Set\.of\((.+?)\),/g,
  "test/interop/python/jwt_libraries.py": /^ {4}"(.+)": \(.+, \{(.+)\}\),$/gm,
};

test.for(table(Object.entries(SUITES)))("the table has the algorithms that %s asserts", async ([path, libraries]) => {
  const file = resolve(ROOT, path);
  const asserted = [...(await readFile(file, "utf8")).matchAll(libraries)].map(([, name = "", algorithms = ""]) => {
    const has = (algorithm: string) => (algorithms.includes(algorithm) ? "yes" : "**no**");
    return `${name.toLowerCase()} | ${has("EdDSA")} | ${has("ES256")}`;
  });
  const documented = ROWS.filter((row) => row.file === file);
  expect(documented.map(({ name, algorithms }) => `${name.toLowerCase()} | ${algorithms}`)).toEqual(asserted);
});
