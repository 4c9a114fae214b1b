import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";

const ROOT = new URL("../..", import.meta.url).pathname;

/** Parts of Checkbox, which the console does not use. */
const UNUSED = ["CheckboxCard.css", "CheckboxIndicator.css"];

const classesOf = (text: string) => text.match(/\bm_[0-9a-f]{6,8}\b/g) ?? [];

const read = (pattern: string) =>
  globSync(pattern, { cwd: ROOT }).map((file) => [file, readFileSync(ROOT + file, "utf8")] as const);

test("the page has the styles of all components in its scripts", () => {
  const inAssets = (kind: string) =>
    new Set(read(`console/dist/assets/*.${kind}`).flatMap(([, text]) => classesOf(text)));
  const [used, styled] = [inAssets("js"), inAssets("css")];
  expect(used.size).toBeGreaterThan(100);
  const missing = read("node_modules/@mantine/*/styles/*.css").filter(([, text]) =>
    classesOf(text).some((name) => used.has(name) && !styled.has(name)),
  );
  expect(
    missing
      .map(([file]) => basename(file))
      .filter((file) => !file.includes(".layer"))
      .sort(),
  ).toEqual(UNUSED);
});
