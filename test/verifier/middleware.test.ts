import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireCredential as expressMiddleware } from "../../src/verifier/express.ts";
import { requireCredential as fastifyHook } from "../../src/verifier/fastify.ts";
import { createKeyVerifier, type Verifier } from "../../src/verifier/index.ts";
import { revoke, table, useService } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { issue } from "../support/rest.ts";

const suite = useService();

let secret: string;
let away: Verifier;
beforeAll(async () => {
  ({ secret } = await issue(suite.rest, { scopes: ["read"] }));
  away = createKeyVerifier({ baseUrl: `http://127.0.0.1:${await freePort()}`, retry: false });
});

/** `/` for everyone with a credential, `/write` for a scope, `/away` when no verdict can be reached. */
type Start = (verifier: Verifier) => Promise<{ readonly url: string; close(): Promise<unknown> }>;

const startFastify: Start = async (verifier) => {
  const app = fastify();
  const handler = async (request: { keyhold?: { actorId: string } }) => ({ actor: request.keyhold?.actorId });
  app.get("/", { onRequest: fastifyHook(verifier) }, handler);
  app.get("/write", { onRequest: fastifyHook(verifier, { scopes: ["read", 'a"b'], realm: "books" }) }, handler);
  app.get("/away", { onRequest: fastifyHook(away) }, handler);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, close: () => app.close() };
};

const startExpress: Start = async (verifier) => {
  const app = express();
  const handler: express.RequestHandler = (request, response) =>
    void response.json({ actor: request.keyhold?.actorId });
  app.get("/", expressMiddleware(verifier), handler);
  app.get("/write", expressMiddleware(verifier, { scopes: ["read", 'a"b'], realm: "books" }), handler);
  app.get("/away", expressMiddleware(away), handler);
  return listen(createServer(app));
};

async function listen(server: Server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => new Promise((done) => server.close(done)) };
}

describe.for(
  table([
    { name: "fastify", start: startFastify },
    { name: "express", start: startExpress },
  ]),
)("$name", ({ start }) => {
  let app: Awaited<ReturnType<Start>>;
  beforeAll(async () => {
    app = await start(createKeyVerifier({ baseUrl: suite.server.url }));
  });
  afterAll(() => app.close());

  async function get(path: string, headers: Record<string, string>) {
    const response = await fetch(app.url + path, { headers: { ...headers, connection: "close" } });
    const challenge = response.headers.get("www-authenticate");
    return {
      status: response.status,
      challenge,
      retryAfter: response.headers.get("retry-after"),
      body: await response.json(),
    };
  }

  test("lets in who has a good credential, in either header", async () => {
    const each: Record<string, string>[] = [
      { authorization: `Bearer ${secret}` },
      { authorization: `bearer  ${secret}` },
      { "x-api-key": secret },
    ];
    for (const headers of each) {
      expect(await get("/", headers)).toMatchObject({ status: 200, body: { actor: "actor_1" } });
    }
    const other = { authorization: "Basic eDp5", "x-api-key": secret };
    expect(await get("/", other)).toMatchObject({ status: 200 });
  });

  test.for<Record<string, string>>([
    {},
    { authorization: "Bearer" },
    { authorization: "Basic eDp5" },
    { "x-api-key": "" },
  ])("asks for a credential where there is none: %j", async (headers) => {
    expect(await get("/", headers)).toMatchObject({ status: 401, challenge: 'Bearer realm="api"' });
  });

  test("refuses what is not valid, and does not show it", async () => {
    const answer = await get("/", { authorization: "Bearer wrong-credential" });
    expect(answer).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="api", error="invalid_token"',
      body: { error: { code: 401, status: "UNAUTHENTICATED", message: "the credential is not valid" } },
    });
    expect(JSON.stringify(answer)).not.toContain("wrong-credential");
  });

  test("refuses two credentials", async () => {
    const headers = { authorization: `Bearer ${secret}`, "x-api-key": secret };
    expect(await get("/", headers)).toMatchObject({
      status: 400,
      challenge: 'Bearer realm="api", error="invalid_request"',
    });
  });

  test("names the scopes that are needed", async () => {
    expect(await get("/write", { "x-api-key": secret })).toMatchObject({
      status: 403,
      challenge: 'Bearer realm="books", error="insufficient_scope", scope="read a\\"b"',
      body: { error: { status: "PERMISSION_DENIED" } },
    });
    const { secret: able } = await issue(suite.rest, { scopes: ["read", 'a"b', "more"] });
    expect(await get("/write", { "x-api-key": able })).toMatchObject({ status: 200 });
  });

  test("lets nobody in when no verdict can be reached", async () => {
    expect(await get("/away", { "x-api-key": secret })).toMatchObject({
      status: 503,
      challenge: null,
      retryAfter: "1",
      body: { error: { status: "UNAVAILABLE" } },
    });
  });

  test("sees a revocation at once", async () => {
    const { secret: short, keyId } = await issue(suite.rest);
    expect(await get("/", { "x-api-key": short })).toMatchObject({ status: 200 });
    await revoke(suite.rest, keyId);
    expect(await get("/", { "x-api-key": short })).toMatchObject({ status: 401 });
  });
});

test("a verifier that fails lets nobody in", async () => {
  const broken: Verifier = { verify: () => Promise.reject(new Error("broken")) };
  const app = await startExpress(broken);
  expect((await fetch(app.url, { headers: { "x-api-key": "x", connection: "close" } })).status).toBe(500);
  await app.close();
});
