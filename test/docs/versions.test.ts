import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { readPages } from "./blocks.ts";

const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../..", file), "utf8");
const versionOf = (file: string): string => JSON.parse(read(file)).version;
const parts = (version: string) => version.split(".").map(Number);

/** Returns a negative number if `a` is lower than `b`. */
function compare(a: string, b: string): number {
  const [left, right] = [parts(a), parts(b)];
  return left.map((part, index) => part - (right[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
}

/** Returns the text under "Unreleased", and the newest version below it. */
function newest(changelog: string) {
  const [, unreleased = "", released = "0.0.0"] =
    /^## Unreleased\n(.*?)(?=^## (\d+\.\d+\.\d+))/ms.exec(changelog) ?? [];
  return { unreleased: unreleased.trim(), released };
}

/** Whether a version is above that of the last release exactly if there are changes that are not released. */
function isOf(version: string, changelog: string): boolean {
  const { unreleased, released } = newest(changelog);
  return unreleased === "" ? compare(version, released) === 0 : compare(version, released) > 0;
}

test("the version is that of the next release while the changelog has changes that are not released", () => {
  const [version, changelog] = [versionOf("package.json"), read("CHANGELOG.md")];
  expect(newest(changelog).released).toMatch(/^\d/);
  expect(isOf(version, changelog)).toBe(true);
  expect(isOf(newest(changelog).released, changelog)).toBe(newest(changelog).unreleased === "");
  expect(versionOf("packages/client/package.json")).toBe(version);
  expect(versionOf("console/package.json")).toBe(version);
  expect(JSON.parse(read("docs/openapi.json")).info.version).toBe(version);
  expect(read("deploy/helm/keyhold/Chart.yaml")).toContain(`\nversion: ${version}\n`);
});

test("pages describe this release, and as earlier only earlier ones", () => {
  const version = versionOf("package.json");
  const earlier = readPages().flatMap(({ name, markdown }) =>
    [...markdown.matchAll(/\b[Rr]eleases? (?:up to )?(\d+\.\d+)/g)].map(([, release = ""]) => [name, release] as const),
  );
  expect(earlier.length).toBeGreaterThan(10);
  expect(earlier.filter(([, release]) => compare(`${release}.0`, version) >= 0)).toEqual([]);
});
