import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type Application, PROTECTED, startApplication, variablesOf } from "./application.ts";
import { type Authority, startAuthority } from "./authority.ts";
import { CLIENT, send } from "./client.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { FORWARD_AUTH } from "./kinds/index.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";

/** What each gateway makes of every answer and failure, with a server in Keyhold's place. */

const TOKEN = "kh_v1_gateway";
const ALLOWED = {
  status: 200,
  headers: { "x-keyhold-key-id": "key-1", "x-keyhold-actor-id": "team_1", "x-keyhold-scopes": "read write" },
};
const BODY = '{"error":{"message":"refused"}}';
const CREDENTIAL = [["Authorization", "Bearer secret"]] as const;

/** The statuses of Keyhold with the headers that a client needs. */
const REFUSALS: readonly { readonly status: number; readonly headers: Readonly<Record<string, string>> }[] = [
  { status: 400, headers: {} },
  { status: 401, headers: { "www-authenticate": 'Bearer realm="keyhold", error="invalid_token"' } },
  { status: 403, headers: { "www-authenticate": 'Bearer realm="keyhold", error="insufficient_scope", scope="read"' } },
  { status: 503, headers: { "retry-after": "1" } },
];

let application: Application;
let authority: Authority;
beforeAll(async () => {
  await installPrograms();
  [application, authority] = await Promise.all([startApplication(), startAuthority()]);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), authority?.close()]));
beforeEach(() => application.forget());

describe.each(FORWARD_AUTH)("$name", (kind) => {
  const { limits } = kind;
  let gateway: Gateway;
  beforeEach(async () => {
    const keyhold = [authority.address, authority.address] as const;
    const settings = { application: application.address, keyhold, token: TOKEN };
    // A new one for each test: after a failure it would not use the server for a second.
    gateway = await startGateway(kind, join(inject("testDir"), "answers"), settings);
    return () => gateway.stop();
  });

  test("asks with its token, the credential and the client's address, without the body", async () => {
    authority.answer(ALLOWED);
    const headers = [
      ...CREDENTIAL,
      ["X-Forwarded-For", "192.0.2.1"],
      ["X-Keyhold-Authorization", "Bearer other"],
    ] as const;
    const answer = await send(gateway.url, { method: "POST", target: "/orders?a=b", headers, body: "a body" });
    expect(answer).toMatchObject({ status: 200, body: PROTECTED });
    const [asked, ...more] = authority.asked;
    expect(more).toEqual([]);
    expect(asked).toMatchObject({ target: kind.asks ?? "/v2alpha1/forwardAuth?required_scopes=read", body: "" });
    if (asked === undefined) return;
    const variables = variablesOf(asked);
    expect(variables.get("HTTP_X_KEYHOLD_AUTHORIZATION")).toEqual([`Bearer ${TOKEN}`]);
    expect(variables.get("HTTP_AUTHORIZATION")).toEqual(["Bearer secret"]);
    expect(variables.get("HTTP_X_FORWARDED_FOR")).toEqual([
      expect.stringMatching(new RegExp(`(^|, ?)${CLIENT}(, 127.0.0.1)?$`)),
    ]);
    expect(variables.get("HTTP_CONTENT_LENGTH") ?? ["0"]).toEqual(["0"]);
    expect(variables.has("HTTP_TRANSFER_ENCODING")).toBe(false);
  });

  test("passes the request with the identity, and without its own token", async () => {
    authority.answer(ALLOWED);
    await send(gateway.url, { method: "POST", target: "/orders?a=b", headers: CREDENTIAL, body: "a body" });
    const [reached, ...more] = application.received;
    expect(more).toEqual([]);
    expect(reached).toMatchObject({ method: "POST", target: "/orders?a=b", body: "a body" });
    if (reached === undefined) return;
    const identity = [...variablesOf(reached)].filter(([name]) => name.includes("KEYHOLD"));
    expect(Object.fromEntries(identity)).toEqual({
      HTTP_X_KEYHOLD_KEY_ID: ["key-1"],
      HTTP_X_KEYHOLD_ACTOR_ID: ["team_1"],
      HTTP_X_KEYHOLD_SCOPES: ["read write"],
    });
    expect(JSON.stringify(reached)).not.toContain(TOKEN);
  });

  test("passes what is left of a limit to the client, or nothing of it", async () => {
    const limit = { "ratelimit-policy": '"requests";q=60;w=60', ratelimit: '"requests";r=59;t=1' };
    authority.answer({ ...ALLOWED, headers: { ...ALLOWED.headers, ...limit } });
    const answer = await send(gateway.url, { headers: CREDENTIAL });
    expect(answer).toMatchObject({ status: 200, body: PROTECTED });
    for (const [name, value] of Object.entries(limit))
      expect([name, answer.header(name)]).toEqual([name, limits.passesLimits === true ? value : undefined]);
  });

  test.each(REFUSALS)("answers $status with its headers", async ({ status, headers }) => {
    authority.answer({ status, headers: { ...headers, "content-type": "application/json" }, body: BODY });
    const answer = await send(gateway.url, { headers: CREDENTIAL });
    expect(answer.status).toBe(status);
    const isComplete = limits.withoutHeaders?.includes(status) !== true;
    for (const [name, value] of Object.entries(headers))
      expect(answer.header(name)).toBe(isComplete ? value : undefined);
    if (limits.passesBody && isComplete) expect(answer.body).toBe(BODY);
    else expect(answer.body).not.toContain("refused");
    expect(application.received).toEqual([]);
  });

  test.each([302, 404, 500])("does not pass a request after %i", async (status) => {
    authority.answer({ status, headers: { ...ALLOWED.headers, location: "/" }, body: BODY });
    const answer = await send(gateway.url, { headers: CREDENTIAL });
    expect(answer.status).toBe(limits.statusOf?.[status] ?? limits.unexpected ?? status);
    expect(application.received).toEqual([]);
  });

  test.each(["never", "reset"] as const)("fails closed where the response is: %s", async (verdict) => {
    authority.answer(verdict);
    const from = performance.now();
    const answer = await send(gateway.url, { headers: CREDENTIAL });
    const seconds = (performance.now() - from) / 1000;
    console.info(`${kind.name}, ${verdict}: ${answer.status} after ${seconds.toFixed(1)} s`);
    expect(limits.unreachable).toContain(answer.status);
    // Two attempts of 3 s each.
    expect(seconds).toBeLessThan(8);
    expect(authority.asked.length).toBeGreaterThan(0);
    expect(application.received).toEqual([]);
  });
});
