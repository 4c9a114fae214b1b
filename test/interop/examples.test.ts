import { readdir } from "node:fs/promises";
import { expect, test } from "vitest";
import { EXAMPLE_PROGRAMS, EXAMPLES } from "./examples.ts";

test("npm run test:interop runs every folder of examples/", async () => {
  const folders = (await readdir(EXAMPLES, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  expect(EXAMPLE_PROGRAMS.map(({ name }) => name).sort()).toEqual(folders.map(({ name }) => name).sort());
});
