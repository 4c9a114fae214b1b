import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./blocks.ts";

test("docs/configuration.md names every variable, and no other", () => {
  const [page, config] = ["docs/configuration.md", "src/config.ts"].map((file) =>
    readFileSync(resolve(ROOT, file), "utf8"),
  );
  const names = (text = "") => new Set(text.match(/KEYHOLD_[A-Z_]+/g));
  expect(names(config).size).toBeGreaterThan(10);
  expect([...names(page)].sort()).toEqual([...names(config)].sort());
});
