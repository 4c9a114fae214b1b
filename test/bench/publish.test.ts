import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { merge, type Result, readResults, readThresholds, toText } from "../../bench/harness/results.ts";
import { spread } from "../../bench/harness/statistics.ts";
import { figureText, resultText } from "../../bench/harness/text.ts";
import { pictures } from "../../bench/publish/pictures.ts";
import { withResults } from "../../bench/publish/table.ts";
import { SCENARIOS } from "../../bench/scenarios/scenarios.ts";

const docs = resolve(import.meta.dirname, "../../docs");
const page = readFileSync(resolve(docs, "performance.md"), "utf8");

const RESULT: Result = {
  name: "verify-rest",
  work: "verify",
  against: "a bare route",
  unit: "requests/s",
  judged: "ratio",
  subject: spread([35_000, 36_000, 37_000]),
  baseline: spread([40_000]),
  figure: 0.9,
  time: "2026-01-01T00:00:00.000Z",
};

test("names of scenarios are unique, and every bound belongs to a scenario", async () => {
  const names = SCENARIOS.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(25);
  expect(new Set(names).size).toBe(names.length);
  expect(Object.keys(await readThresholds()).filter((name) => !names.includes(name))).toEqual([]);
});

test("docs/performance.md and its pictures show the committed results", async () => {
  const results = (await readResults()) ?? { machine: {}, scenarios: [] };
  if (results.scenarios.length > 0) expect(page).toBe(withResults(page, results, await readThresholds()));
  for (const [name, svg] of pictures(results)) {
    expect(existsSync(resolve(docs, "img", name)) && readFileSync(resolve(docs, "img", name), "utf8")).toBe(svg);
  }
});

test("a row of the table has the result and its bound", () => {
  const written = withResults(
    page,
    { machine: { node: "v1" }, scenarios: [RESULT] },
    { "verify-rest": { at_least: 0.8, wanted: { at_least: 0.85 } } },
  );
  expect(written).toContain(
    "| verify `verify-rest` | a bare route | 36,000 (35,000–37,000) requests/s | 40,000 requests/s | 0.90 × | ≥ 0.85 |",
  );
  const wanting = { "verify-rest": { at_least: 0.8, wanted: { at_least: 0.95 } } };
  expect(withResults(page, { machine: {}, scenarios: [RESULT] }, wanting)).toContain("| ≥ 0.95: **short** | ≥ 0.8 |");
  expect(written).toContain("- node: v1");
  expect(written).toContain("(img/throughput-by-protocol.svg)");
});

test("a table replaces the previous one", () => {
  const results = { machine: {}, scenarios: [RESULT] };
  const once = withResults(page, results, {});
  expect(withResults(once, results, {})).toBe(once);
});

test("a figure beyond its bound is marked MISSED", () => {
  expect(resultText(RESULT, { at_least: 0.95 })).toContain("MISSED, ≥ 0.95");
  expect(resultText(RESULT, { at_least: 0.85 })).toContain("ok, ≥ 0.85");
  expect(resultText(RESULT, undefined)).not.toContain("ok");
});

test("a difference shows its sign, and a value its unit", () => {
  expect(figureText({ ...RESULT, judged: "difference", figure: 0.512, unit: "s" })).toBe("+0.512 s");
  expect(figureText({ ...RESULT, judged: "value", figure: 118.4, unit: "MB" })).toBe("118 MB");
});

test("a run of some scenarios keeps the results of the others, in the order of the scenarios", () => {
  const other = { ...RESULT, name: "create" };
  const newer = { ...RESULT, figure: 0.95 };
  const gone = { ...RESULT, name: "gone" };
  expect(merge([other, RESULT, gone], [newer], ["verify-rest", "create", "never"])).toEqual([newer, other]);
});

test("results have four significant digits, and lists of numbers are on one line", () => {
  const results = {
    machine: { memory: "24 GiB" },
    scenarios: [{ ...RESULT, subject: spread([0.000123456, 1e21, 36_000]) }],
  };
  const text = toText(results);
  expect(text).toContain('"samples": [0.0001235, 1e+21, 36000]');
  expect(JSON.parse(text).scenarios[0].against).toBe("a bare route");
});

test("a chart has a bar for each figure, and is omitted without figures", () => {
  expect(pictures({ scenarios: [] }).size).toBe(0);
  const svg = pictures({ scenarios: [RESULT] }).get("throughput-by-protocol.svg") ?? "";
  expect(svg).toContain(">36,000</text>");
  expect(svg).toContain(">40,000</text>");
});
