import { globSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./blocks.ts";

/** Folders and files whose text is read by people. */
const PLACES = [
  "src",
  "proto/keyhold",
  "docs",
  "deploy",
  "bench",
  "tools",
  "test",
  "examples",
  "packages/client/README.md",
  "README.md",
];
const TEXT = /\.(ts|js|proto|md|sql|ya?ml|conf|sh|txt|go|py|java|rs|html|toml|xml)$/;
/** Folders that tests and builds create and remove meanwhile. */
const CREATED = ["**/node_modules", "**/.blocks-*", "**/.venv", "**/target", "**/gen", "**/generated"];
const SKIPPED = /results\.json|test\/docs\/language\.test\.ts|test\/upgrade\/upgrade\.ts|migrations\/000[1-8]/;

/** Expressions that have a standard term (CONTRIBUTING.md, "Language"). */
const AVOIDED: Readonly<Record<string, RegExp>> = {
  "is notified, receives": /\b(?:is|are|was|were|be|been|being) told\b|\b(?:hears?|heard)\b/i,
  "is admitted, is granted access": /\blet in to\b|\bis let in\b/i,
  cached: /\bat hand\b/i,
  returned: /\bgiven back\b|\bgive back\b/i,
  "in flight": /\bunder way\b|\bon (?:its|their) way\b/i,
  unreachable: /\b(?:is|are|was|were) away\b/i,
  "layers, modules": /\bthe house\b|\b(?:top|ground) floor\b/i,
  "fault injection": /\bsabotage/i,
  "at most, at least": /\bat the (?:most|least)\b/i,
  "instead of": /\bin the place of\b/i,
  "reports, describes": /\btells? of\b/i,
  "happens to, affects": /\bbefall/i,
  "a subject and a verb": /(?:^|[.:] |\/\*\* |\/\/ |^ *\* )Of an? [a-z]/,
  "a document of this repository": /\bcontract §/i,
};

/** Words that a reader searches for. */
const SEARCHED = [
  "retry",
  "retries",
  "idempotent",
  "drain",
  "in-flight",
  "in flight",
  "circuit breaker",
  "backoff",
  "invalidate",
];

function filesOf(place: string): string[] {
  const path = join(ROOT, place);
  if (statSync(path).isFile()) return [path];
  return globSync("**", { cwd: path, exclude: CREATED })
    .map((file) => join(path, file))
    .filter((file) => TEXT.test(file) && !SKIPPED.test(file) && statSync(file).isFile());
}

test.for(PLACES)("%s uses the standard terms", (place) => {
  const found = filesOf(place).flatMap((file) =>
    readFileSync(file, "utf8")
      .split("\n")
      .flatMap((line, index) =>
        Object.entries(AVOIDED)
          .filter(([, pattern]) => pattern.test(line))
          .map(([term]) => `${relative(ROOT, file)}:${index + 1}: ${line.trim().slice(0, 100)} → ${term}`),
      ),
  );
  expect(found).toEqual([]);
});

test.for(SEARCHED)("the documentation contains %s", (word) => {
  const pages = filesOf("docs").filter((file) => file.endsWith(".md"));
  expect(pages.some((file) => readFileSync(file, "utf8").toLowerCase().includes(word))).toBe(true);
});
