import { resolve } from "node:path";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

/** What a browser or an edge runtime would get. */
async function bundle(entry: string) {
  const input = resolve(import.meta.dirname, "../../src", entry);
  const build = await rolldown({ input, platform: "browser", treeshake: false, logLevel: "silent" });
  const { output } = await build.generate({ format: "esm", codeSplitting: false });
  await build.close();
  return output[0];
}

test.for(["client/index.ts", "verifier/index.ts"])("%s needs nothing of Node", async (entry) => {
  const { imports, dynamicImports, code } = await bundle(entry);
  expect([...imports, ...dynamicImports]).toEqual([]);
  expect(code.length).toBeGreaterThan(10_000);
  expect(code).not.toMatch(/["']node:|\brequire\(|\bBuffer\.(?:from|alloc)/);
});
