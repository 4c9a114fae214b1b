import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./blocks.ts";

test("the README names every variable of the configuration, and no other", () => {
  const [readme, config] = ["README.md", "src/config.ts"].map((file) => readFileSync(resolve(ROOT, file), "utf8"));
  const names = (text = "") => new Set(text.match(/KEYHOLD_[A-Z_]+/g));
  expect(names(config).size).toBeGreaterThan(10);
  expect([...names(readme)].sort()).toEqual([...names(config)].sort());
});
