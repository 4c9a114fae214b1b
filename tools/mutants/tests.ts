import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Returns the importers of each file. */
function importers(root: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const folder of ["src", "test"]) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (!name.endsWith(".ts")) continue;
      const file = join(folder, name);
      const text = readFileSync(join(root, file), "utf8");
      for (const [, specifier = ""] of text.matchAll(/^(?:import|export) (?!type )[^"]*?"(\.[^"]+)";?$/gm)) {
        const target = normalize(join(dirname(file), specifier));
        found.set(target, (found.get(target) ?? new Set()).add(file));
      }
    }
  }
  return found;
}

function wordsOf(file: string): Set<string> {
  return new Set(file.replace(/^\w+\/|(?:\.test)?\.ts$/g, "").split(/[^a-z0-9]+/));
}

/** Returns the test files to run for a line of `file`, at most `count`; `own` are those that were changed together with the line. */
export type FindTests = (file: string, own: ReadonlySet<string>, count: number) => string[];

/**
 * Returns a function that finds the test files that concern a line: those that were changed with it, then those that have most of the words
 * of its file in their path, rare ones above all, then the nearest by imports. Long tests only if they were changed with the line.
 */
export function testFinder(root: string, isLong: (file: string) => boolean): FindTests {
  const importing = importers(root);
  const all = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((name) => join("test", name));
  // The test of the architecture counts what mutants remove.
  const isTest = (file: string) => file.endsWith(".test.ts") && file !== "test/architecture.test.ts";
  const tests = all.filter(isTest).map((file) => ({ file, words: wordsOf(file) }));
  const rarity = (word: string) =>
    Math.log((tests.length + 1) / (tests.filter(({ words }) => words.has(word)).length + 1));
  return (file, own, count) => {
    const distances = new Map([[file, 0]]);
    for (const [one, distance] of distances) {
      for (const next of importing.get(one) ?? []) if (!distances.has(next)) distances.set(next, distance + 1);
    }
    const rarities = [...wordsOf(file)].map((word) => [word, rarity(word)] as const);
    const score = ({ file: test, words }: (typeof tests)[number]) =>
      rarities.reduce((sum, [word, value]) => sum + (words.has(word) ? value : 0), own.has(test) ? NOT_IMPORTED : 0) -
      (distances.get(test) ?? NOT_IMPORTED);
    return tests
      .filter((test) => own.has(test.file) || !isLong(test.file))
      .map((test) => ({ file: test.file, score: score(test) }))
      .sort((one, other) => other.score - one.score)
      .slice(0, count)
      .map(({ file: test }) => test);
  };
}

/** The distance of a test that reaches a file only through another process. */
const NOT_IMPORTED = 8;
