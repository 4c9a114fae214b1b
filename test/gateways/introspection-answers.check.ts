import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { type Application, startApplication } from "./application.ts";
import { type Authority, startAuthority } from "./authority.ts";
import { send } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { apache } from "./kinds/apache.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";

/** What Apache makes of the answers of an introspection endpoint, with a server in Keyhold's place. */

const ACTIVE = { active: true, scope: "read write", sub: "team_1", client_id: "key-1", token_type: "Bearer" };
const answerOf = (body: unknown) => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

let application: Application;
let authority: Authority;
beforeAll(async () => {
  await installPrograms();
  [application, authority] = await Promise.all([startApplication(), startAuthority()]);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), authority?.close()]));

let gateway: Gateway;
let used = 0;
beforeEach(async () => {
  application.forget();
  const settings = {
    application: application.address,
    keyhold: [authority.address, authority.address] as const,
    token: "kh_v1_gateway",
  };
  gateway = await startGateway(apache, join(inject("testDir"), "introspection"), settings);
  return () => gateway.stop();
});

const ask = (credential: string) => send(gateway.url, { headers: [["Authorization", `Bearer ${credential}`]] });

test("asks for each request, and caches no answer", async () => {
  const credential = `credential${++used}`;
  authority.answer(answerOf(ACTIVE));
  for (let request = 1; request <= 3; request++) {
    expect(await ask(credential)).toMatchObject({ status: 200 });
    expect(authority.asked).toHaveLength(request);
  }
  authority.answer(answerOf({ active: false }));
  expect(await ask(credential)).toMatchObject({ status: 401 });
  authority.answer(answerOf(ACTIVE));
  expect(await ask(credential)).toMatchObject({ status: 200 });
});

test.each([
  { name: "inactive", answer: answerOf({ active: false }) },
  { name: "no active", answer: answerOf({ scope: "read", sub: "team_1" }) },
  { name: "another scope", answer: answerOf({ ...ACTIVE, scope: "readx x.read read-all" }) },
  { name: "no scope", answer: answerOf({ ...ACTIVE, scope: undefined }) },
  { name: "429", answer: { ...answerOf(ACTIVE), status: 429 } },
  { name: "503", answer: { ...answerOf(ACTIVE), status: 503 } },
  { name: "500", answer: { ...answerOf(ACTIVE), status: 500 } },
  { name: "no JSON", answer: { status: 200, body: "active" } },
  { name: "reset", answer: "reset" as const },
  { name: "never", answer: "never" as const },
])("refuses a request where the answer is: $name", async ({ answer }) => {
  authority.answer(answer);
  const from = performance.now();
  const { status, header } = await ask(`credential${++used}`);
  expect(status).toBe(401);
  expect(header("WWW-Authenticate")).toMatch(/^Bearer /);
  expect(performance.now() - from).toBeLessThan(8_000);
  expect(application.received).toEqual([]);
});
