import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { readResults, readThresholds } from "../../bench/harness/results.ts";
import { pictures } from "../../bench/publish/pictures.ts";
import { withResults } from "../../bench/publish/table.ts";
import { SCENARIOS } from "../../bench/scenarios/scenarios.ts";

const docs = resolve(import.meta.dirname, "../../docs");

test("names of scenarios are unique, and every threshold belongs to a scenario", async () => {
  const names = SCENARIOS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.keys(await readThresholds()).filter((name) => !names.includes(name))).toEqual([]);
});

test("docs/performance.md and its pictures show the committed results", async () => {
  const results = (await readResults(SCENARIOS)) ?? { machine: {}, scenarios: [] };
  const page = readFileSync(resolve(docs, "performance.md"), "utf8");
  if (results.scenarios.length > 0) expect(page).toBe(withResults(page, results, await readThresholds()));
  for (const [name, svg] of pictures(results)) {
    expect(existsSync(resolve(docs, "img", name)) && readFileSync(resolve(docs, "img", name), "utf8")).toBe(svg);
  }
});
