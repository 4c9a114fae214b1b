import { resolve } from "node:path";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { send } from "../support/wire.ts";
import type { Family } from "./case.ts";
import type { CaseContext } from "./case-context.ts";
import { createExecutionMonitor } from "./execution-monitor.ts";
import { isAllowed } from "./faults.ts";
import { converse } from "./http1.ts";
import { Runner } from "./runner.ts";
import { Target } from "./target.ts";

/** Tests the runner against a faulty server: a defect that it misses here, it would miss in Keyhold. */

const SEED = 1;

let keyhold: TestServer;
let sql: Sql;
let context: CaseContext;
let target: Target;
let runner: Runner;

beforeAll(async () => {
  keyhold = await startTestServer();
  sql = postgres(keyhold.ownerUrl, { max: 1, onnotice: () => {} });
  const references = { parse: () => Promise.reject(new Error("not used")), http2Port: 0 };
  const credentials = { issued: "issued", imported: "imported", jwt: "jwt", macaroon: "macaroon" };
  const monitor = await createExecutionMonitor(sql, restClient(keyhold));
  context = { monitor, credentials, references, takeRevocable: () => undefined, addRevocable: async () => {} };
  const environment = { DATABASE_URL: keyhold.ownerUrl, VICTIM: context.monitor.unfinished().issuedKeyId };
  const main = resolve(import.meta.dirname, "faulty-server.ts");
  target = new Target({ name: "bad", environment, token: undefined, main });
  await target.start();
});

beforeEach(() => {
  runner = new Runner([target], context, SEED);
});

afterAll(async () => {
  await target?.stop();
  await sql?.end();
  await keyhold?.close();
});

/** Cases, some of which request the path and the others a harmless one. */
function familyOf(path: string): Family {
  return {
    name: "faults",
    parallel: 8,
    weight: 1,
    generate(random) {
      const asked = random.below(4) === 0 ? path : "/good";
      return { kind: asked, description: () => asked, run: (target) => request(target, asked) };
    },
  };
}

async function request({ url, port }: Target, path: string): Promise<string[]> {
  if (path === "/unfinished") {
    const text = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{`;
    await converse(port, [Buffer.from(text)], { ending: "wait" });
    return [];
  }
  const { status } = await send(url + path, "GET", undefined).catch(() => ({ status: 0 }));
  return isAllowed(status) ? [] : [`answered ${status}`];
}

test("a correct server has no findings", async () => {
  await runner.measureMemory("start");
  for (let batch = 0; batch < 3; batch++) await runner.runBatch(familyOf("/good"), batch);
  await runner.measureMemory("faults");
  expect(runner.findings).toEqual([]);
  // Cases are repeated if the machine is slow.
  expect(runner.counts.get("faults: /good")).toBeGreaterThanOrEqual(24);
  expect(runner.memory).toHaveLength(2);
});

test.each([
  ["dies", "/die", "the process ended (exit code 3)"],
  ["answers 500", "/fault", "answered 500"],
  ["logs an error", "/log", "logged: "],
  ["executes an unfinished request", "/unfinished", "an unfinished request changed or deleted the key"],
  ["stalls its event loop", "/stall", "held the event loop for "],
])("a server that %s is reported, with exactly the cases that caused it", async (_, path, problem) => {
  const family = familyOf(path);
  await runner.runBatch(family, 0);
  const bad = Array.from({ length: family.parallel }, (_, index) => index).filter(
    (index) => runner.caseOf(family, index).kind === path,
  );
  expect(bad.length).toBeGreaterThan(0);
  expect(runner.findings.map(({ indices }) => indices)).toEqual(bad.map((index) => [index]));
  for (const { target, description, problems } of runner.findings) {
    expect({ target, description, problems: problems.join() }).toEqual({
      target: "bad",
      description: path,
      problems: expect.stringContaining(problem),
    });
  }
});

test("a stall right after an observation is in the next one", async () => {
  for (let round = 0; round < 3; round++) {
    await target.observe();
    await request(target, "/stall");
    expect((await target.observe()).eventLoopDelay).toBeGreaterThan(300);
  }
});

test("a server that retains memory is reported", async () => {
  await runner.measureMemory("start");
  await runner.runBatch(familyOf("/leak"), 0);
  await runner.measureMemory("faults");
  // On a busy machine its allocation may exceed the limit of a tick as well, which is another finding.
  const retains = { family: "faults", problems: [expect.stringMatching(/^retains \d+ MiB/)] };
  expect(runner.findings).toContainEqual(expect.objectContaining(retains));
});

test("an uncaught exception is reported", async () => {
  await runner.runBatch(familyOf("/uncaught"), 0);
  expect(runner.findings[0]?.problems.join()).toMatch(/keyhold_uncaught_total is [1-9]/);
});
