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

/**
 * Returns a function that finds the test files that concern a file of `src`: those that have most of its words in their path, rare ones
 * above all, then the nearest by imports.
 */
export function testFinder(root: string, isTest: (file: string) => boolean): (file: string, count: number) => string[] {
  const importing = importers(root);
  const all = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).map((name) => join("test", name));
  const tests = all.filter(isTest).map((file) => ({ file, words: wordsOf(file) }));
  const rarity = (word: string) =>
    Math.log((tests.length + 1) / (tests.filter(({ words }) => words.has(word)).length + 1));
  return (file, count) => {
    const distances = new Map([[file, 0]]);
    for (const [one, distance] of distances) {
      for (const next of importing.get(one) ?? []) if (!distances.has(next)) distances.set(next, distance + 1);
    }
    const own = [...wordsOf(file)].map((word) => [word, rarity(word)] as const);
    const score = ({ file: test, words }: (typeof tests)[number]) =>
      own.reduce((sum, [word, value]) => sum + (words.has(word) ? value : 0), 0) -
      (distances.get(test) ?? NOT_IMPORTED);
    const ranked = tests.map((test) => ({ file: test.file, score: score(test) })).sort((a, b) => b.score - a.score);
    return ranked.slice(0, count).map(({ file: test }) => test);
  };
}

/** The distance of a test that reaches a file only through another process. */
const NOT_IMPORTED = 8;
