import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, inject, test } from "vitest";
import { answerTo } from "../../src/api/envoy/check-response.ts";
import { failed, type GatewayDecision, malformed, rejected, UNAUTHENTICATED } from "../../src/api/gateways/decision.ts";
import { invalid } from "../../src/domain/verdict.ts";
import type { Json } from "../support/rest.ts";
import { type Application, PROTECTED, startApplication, variablesOf } from "./application.ts";
import { CLIENT, send } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { type Answer, type GrpcAuthority, startGrpcAuthority } from "./grpc-authority.ts";
import { envoy } from "./kinds/envoy.ts";
import { INSTALL_TIMEOUT, installOfPython } from "./programs.ts";

/** What Envoy makes of every answer and failure of ext_authz over gRPC, with a server in Keyhold's place. */

const TOKEN = "kh_v1_gateway";
const CREDENTIAL = [["Authorization", "Bearer secret"]] as const;
const IDENTITY = { keyId: "key-1", actorId: "team_1", scopes: ["read", "write"], metadata: { plan: "" } };
const ALLOWED: GatewayDecision = {
  status: 200,
  headers: [
    ["cache-control", "no-store"],
    ["x-keyhold-key-id", "key-1"],
    ["x-keyhold-actor-id", "team_1"],
    ["x-keyhold-scopes", "read write"],
    ["x-keyhold-metadata-plan", ""],
  ],
  identity: IDENTITY,
  body: "",
};

let application: Application;
let authority: GrpcAuthority;
beforeAll(async () => {
  await installOfPython();
  [application, authority] = await Promise.all([startApplication(), startGrpcAuthority()]);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), authority?.close()]));

let gateway: Gateway;
const start = async (edits: Readonly<Record<string, string>> = {}) => {
  const keyhold = [authority.address, authority.address] as const;
  const settings = { application: application.address, keyhold, token: TOKEN, edits };
  return startGateway(envoy, join(inject("testDir"), "ext-authz-answers"), settings);
};
beforeEach(async () => {
  application.forget();
  // A new one for each test: after a failure it would not use the server for a second.
  gateway = await start();
  return () => gateway.stop();
});

const identity = () => {
  const [reached, ...more] = application.received;
  expect(more).toEqual([]);
  if (reached === undefined) throw new Error("nothing reached the application");
  return Object.fromEntries([...variablesOf(reached)].filter(([name]) => name.includes("KEYHOLD")));
};
const OURS = {
  HTTP_X_KEYHOLD_KEY_ID: ["key-1"],
  HTTP_X_KEYHOLD_ACTOR_ID: ["team_1"],
  HTTP_X_KEYHOLD_SCOPES: ["read write"],
  HTTP_X_KEYHOLD_METADATA_PLAN: [""],
};

test("asks with its token, the request and the address of the client, without the body", async () => {
  authority.answer(answerTo(ALLOWED, []));
  const headers = [
    ...CREDENTIAL,
    ["X-Api-Key", "a"],
    ["X-Api-Key", "b"],
    ["X-Keyhold-Authorization", "Bearer x"],
  ] as const;
  const answer = await send(gateway.url, { method: "POST", target: "/orders?a=b", headers, body: "a body" });
  expect(answer).toMatchObject({ status: 200, body: PROTECTED });
  const [asked, ...more] = authority.asked;
  expect(more).toEqual([]);
  expect(asked?.metadata.get("authorization")).toBe(`Bearer ${TOKEN}`);
  expect(asked?.request.attributes).toMatchObject({
    contextExtensions: { required_scopes: "read" },
    source: { address: { socketAddress: { address: CLIENT } } },
  });
  const http = asked?.request.attributes?.request?.http;
  expect(http).toMatchObject({ method: "POST", path: "/orders?a=b", headers: {}, body: "" });
  const fields = http?.headerMap?.headers.map(
    ({ key, rawValue }: Json) => `${key}: ${Buffer.from(rawValue).toString()}`,
  );
  expect(fields).toEqual(expect.arrayContaining(["authorization: Bearer secret", "x-api-key: a", "x-api-key: b"]));
  expect(fields?.filter((field: string) => field.includes("keyhold"))).toEqual([]);
  expect(application.received[0]).toMatchObject({ method: "POST", target: "/orders?a=b", body: "a body" });
  expect(identity()).toEqual(OURS);
  expect(JSON.stringify(application.received)).not.toContain(TOKEN);
});

const REJECTED = (["EXPIRED", "INSUFFICIENT_SCOPE", "INTERNAL"] as const).map((reason) =>
  rejected(invalid(reason, "no"), ["read"]),
);
test.each([malformed("twice"), UNAUTHENTICATED, ...REJECTED])(
  "answers $status with its headers and body",
  async (decision) => {
    authority.answer(answerTo(decision, []));
    const answer = await send(gateway.url, { headers: CREDENTIAL });
    expect(answer).toMatchObject({ status: decision.status, body: decision.body });
    for (const [name, value] of decision.headers) expect(answer.header(name)).toBe(value);
    expect(application.received).toEqual([]);
  },
);

const okResponse = answerTo(ALLOWED, []).httpResponse;

test.each<{ readonly name: string; readonly answer: Answer; readonly status: number }>([
  ...[2, 3, 5, 7, 13, 14, 16, 99, -1].map((code) => ({
    name: `code ${code} that allows`,
    answer: { status: { code }, httpResponse: okResponse } as Answer,
    status: 403,
  })),
  { name: "a denial without a response", answer: { status: { code: 16 } }, status: 403 },
  ...[Code.Unimplemented, Code.Unauthenticated, Code.Internal, Code.Unavailable, Code.ResourceExhausted].map(
    (answer) => ({ name: `RPC error ${answer}`, answer, status: 503 }),
  ),
])("does not pass a request after $name", async ({ answer, status }) => {
  authority.answer(answer);
  expect((await send(gateway.url, { headers: CREDENTIAL })).status).toBe(status);
  expect(application.received).toEqual([]);
});

test.each(["never", "reset"] as const)("fails closed where the response is: %s", async (next) => {
  authority.answer(next);
  const from = performance.now();
  expect((await send(gateway.url, { headers: CREDENTIAL })).status).toBe(503);
  expect(performance.now() - from).toBeLessThan(8000);
  expect(authority.asked.length).toBeGreaterThan(0);
  expect(application.received).toEqual([]);
});

test("does not pass a request where no server speaks gRPC", async () => {
  const settings = {
    application: application.address,
    keyhold: [application.address, application.address] as const,
    token: TOKEN,
  };
  const other = await startGateway(envoy, join(inject("testDir"), "ext-authz-answers"), settings);
  try {
    const { status, body } = await send(other.url, { headers: CREDENTIAL });
    expect([status, body]).not.toContain(PROTECTED);
    expect(status).toBe(503);
  } finally {
    await other.stop();
  }
});

test("with failure_mode_allow a denial for want of a verdict refuses, and only an error of the RPC passes", async () => {
  const open = await start({ "failure_mode_allow: false": "failure_mode_allow: true" });
  try {
    authority.answer(answerTo(failed(new Error("no database")), []));
    expect((await send(open.url, { headers: CREDENTIAL })).status).toBe(503);
    expect(application.received).toEqual([]);
    authority.answer(Code.Unavailable);
    expect((await send(open.url, { headers: CREDENTIAL })).status).toBe(200);
  } finally {
    await open.stop();
  }
});
