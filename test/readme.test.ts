import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "./support/server.ts";

const root = resolve(import.meta.dirname, "..");
const readme = readFileSync(resolve(root, "README.md"), "utf8");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

/** The blocks of the tour, in order. */
function tourBlocks(): string[] {
  return [...readme.matchAll(/^```sh tour\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block);
}

/** Runs a block as it stands, but for the address of the server. */
async function run(block: string): Promise<string> {
  const script = `set -euo pipefail\n${block.replaceAll("http://127.0.0.1:4420", server.url)}`;
  const { stdout } = await promisify(execFile)("bash", ["-c", script], { cwd: root });
  return stdout;
}

test("the tour with curl does what it says", async () => {
  const [curl = ""] = tourBlocks();
  const output = await run(curl);
  expect(output).not.toContain('"error"');
  expect(output).toContain('"is_valid":true');
  expect(output.match(/"VERIFICATION_ERROR_REVOKED"/g)).toHaveLength(2);
}, 60_000);

test("the tour with buf curl does what it says", async () => {
  const [, buf = ""] = tourBlocks();
  const output = await run(buf);
  expect(output).toMatch(/"isValid":\s*true/);
}, 60_000);

test("the README names every variable of the configuration, and no other", () => {
  const config = readFileSync(resolve(root, "src/config.ts"), "utf8");
  const names = (text: string) => new Set(text.match(/KEYHOLD_[A-Z_]+/g));
  expect(names(config).size).toBeGreaterThan(10);
  expect([...names(readme)].sort()).toEqual([...names(config)].sort());
});
