import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./blocks.ts";

test("docs/configuration.md lists exactly the variables", () => {
  const read = (...files: string[]) => files.map((file) => readFileSync(resolve(ROOT, file), "utf8")).join("");
  const page = read("docs/configuration.md");
  const folders = ["src/server/config", "src/server/root-secrets"];
  const files = folders.flatMap((folder) => readdirSync(resolve(ROOT, folder)).map((file) => `${folder}/${file}`));
  const config = read(...files);
  const names = (text: string) => new Set(text.match(/KEYHOLD_[A-Z_]+/g));
  expect(names(config).size).toBeGreaterThan(10);
  expect([...names(page)].sort()).toEqual([...names(config)].sort());
});
