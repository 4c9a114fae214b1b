import { resolve } from "node:path";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";
import type { KeyholdClient } from "../../src/client/index.ts";
import { useService } from "../support/conformance.ts";
import { issue } from "../support/rest.ts";

const suite = useService();

/** Bundles the client like for a browser or an edge runtime, as a script that returns its exports. */
async function bundle(entry: string) {
  const input = resolve(import.meta.dirname, "../../src", entry);
  const build = await rolldown({ input, platform: "browser", treeshake: false, logLevel: "silent" });
  const { output } = await build.generate({ format: "iife", name: "keyhold", codeSplitting: false });
  await build.close();
  return output[0];
}

/** Globals of web standards, and none that only Node has. */
const WEB = {
  URL,
  Headers,
  Response,
  AbortController,
  AbortSignal,
  TextEncoder,
  TextDecoder,
  crypto,
  fetch,
  performance,
  setTimeout,
  clearTimeout,
};

test.for(["client/index.ts", "verifier/index.ts"])("%s imports no Node module", async (entry) => {
  const { imports, dynamicImports, code } = await bundle(entry);
  expect([...imports, ...dynamicImports]).toEqual([]);
  expect(code.length).toBeGreaterThan(10_000);
  expect(code).not.toMatch(/["']node:|\bBuffer\.(?:from|alloc)/);
});

test("the client runs with web standards only", async () => {
  const { secret } = await issue(suite.rest);
  const context = createContext({ ...WEB, baseUrl: suite.server.url });
  runInContext((await bundle("client/index.ts")).code, context);
  const client: KeyholdClient = runInContext("keyhold.createKeyholdClient({ baseUrl })", context);
  expect(await client.apiKeys.verifyApiKey({ credential: secret })).toMatchObject({ isValid: true });
  expect((await client.issuedApiKeys.createIssuedApiKey({ name: "a", actorId: "b" })).secret).toMatch(/^kh_v1_/);
});
