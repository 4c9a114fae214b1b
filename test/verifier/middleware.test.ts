import { createServer, type Server } from "node:http";
import { setImmediate } from "node:timers/promises";
import { inspect } from "node:util";
import { ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import express from "express";
import { type FastifyRequest, fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type AdmissionOptions, createAdmission, warnAtIntervals } from "../../src/verifier/admission.ts";
import { requireCredential as expressMiddleware } from "../../src/verifier/express.ts";
import { requireCredential as fastifyHook } from "../../src/verifier/fastify.ts";
import { createKeyVerifier, createTokenVerifier, type Verifier } from "../../src/verifier/index.ts";
import { send } from "../gateways/client.ts";
import { type Keys, makeKeys } from "../gateways/servers.ts";
import { OF_HEADERS, SERVICE_STATUSES } from "../gateways/situations.ts";
import { derive, revoke, table, useService } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { listenLocally } from "../support/listen.ts";
import { issue } from "../support/rest.ts";

const suite = useService();

let secret: string;
let keys: Keys;
let unreachable: Verifier;
beforeAll(async () => {
  ({ secret } = await issue(suite.rest, { scopes: ["read"] }));
  keys = await makeKeys(
    {
      issue: (fields = {}) => issue(suite.rest, { scopes: ["read"], ...fields }),
      revoke: (keyId) => revoke(suite.rest, keyId),
      derive: async (credential, audience) => (await derive(suite.rest, credential, { audience: [audience] })).token,
    },
    "unknown",
  );
  unreachable = createKeyVerifier({ baseUrl: `http://127.0.0.1:${await freePort()}`, retry: false });
});

const streaming = () => ({ transport: createGrpcTransport({ baseUrl: suite.server.url }), stream: true });

/** Serves `/` for every valid credential, `/write` for a scope, and `/unreachable` with a verifier that cannot reach the server. */
type Start = (verifier: Verifier) => Promise<{ readonly url: string; close(): Promise<unknown> }>;

const SCOPED = { requiredScopes: ["read", "write"] };

const LACKS = "the credential lacks a required scope";

/** The calls of `onError` of `/reported`. */
const reports: { readonly error: Error; readonly path: string | undefined }[] = [];

/** The routes of each application by their path. */
const routes = (verifier: Verifier): Record<string, readonly [Verifier, AdmissionOptions?]> => ({
  "/": [verifier],
  "/write": [verifier, { requiredScopes: ["read", 'a"b'], realm: "books" }],
  "/read": [verifier, { requiredScopes: ["read"] }],
  "/scoped": [verifier, SCOPED],
  "/behind-proxy": [verifier, { trustedProxies: ["127.0.0.1"] }],
  "/unreachable": [unreachable],
});

const startFastify: Start = async (verifier) => {
  const app = fastify();
  const handler = async ({ keyhold }: FastifyRequest) => ({ actor: keyhold?.actorId, plan: keyhold?.metadata?.plan });
  const onError = (error: Error, { url }: FastifyRequest) => void reports.push({ error, path: url });
  for (const [path, route] of Object.entries(routes(verifier)))
    app.get(path, { onRequest: fastifyHook(...route) }, handler);
  app.get("/reported", { onRequest: fastifyHook(unreachable, { onError }) }, handler);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, close: () => app.close() };
};

const startExpress: Start = async (verifier) => {
  const app = express();
  const handler: express.RequestHandler = ({ keyhold }, response) =>
    void response.json({ actor: keyhold?.actorId, plan: keyhold?.metadata?.plan });
  const onError = (error: Error, { path }: express.Request) => void reports.push({ error, path });
  for (const [path, route] of Object.entries(routes(verifier))) app.get(path, expressMiddleware(...route), handler);
  app.get("/reported", expressMiddleware(unreachable, { onError }), handler);
  return listen(createServer(app));
};

async function listen(server: Server) {
  const url = `http://127.0.0.1:${await listenLocally(server)}`;
  return { url, close: () => new Promise((done) => server.close(done)) };
}

describe.for(
  table([
    { name: "fastify", start: startFastify, over: () => ({ baseUrl: suite.server.url }) },
    { name: "express", start: startExpress, over: () => ({ baseUrl: suite.server.url }) },
    { name: "fastify over a stream", start: startFastify, over: streaming },
    { name: "express over a stream", start: startExpress, over: streaming },
  ]),
)("$name", ({ start, over }) => {
  let app: Awaited<ReturnType<Start>>;
  beforeAll(async () => {
    app = await start(createKeyVerifier(over()));
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

  test("admits a valid credential in either header", async () => {
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

  test.for<Record<string, string>>([{}, { authorization: "Basic eDp5" }, { "x-api-key": "" }])(
    "requests a credential if there is none: %j",
    async (headers) => {
      expect(await get("/", headers)).toMatchObject({ status: 401, challenge: 'Bearer realm="api"' });
    },
  );

  test("rejects an invalid credential without quoting it", async () => {
    const answer = await get("/", { authorization: "Bearer wrong-credential" });
    expect(answer).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="api", error="invalid_token", error_description="the credential is not valid"',
      body: { error: { code: 401, status: "UNAUTHENTICATED", message: "the credential is not valid" } },
    });
    expect(JSON.stringify(answer)).not.toContain("wrong-credential");
  });

  test("rejects two credentials", async () => {
    const headers = { authorization: `Bearer ${secret}`, "x-api-key": "other" };
    const why = "the request has two different credentials";
    expect(await get("/", headers)).toMatchObject({
      status: 400,
      challenge: `Bearer realm="api", error="invalid_request", error_description="${why}"`,
    });
  });

  test.for(OF_HEADERS)("$name: as a gateway", async ({ name, sent, status, challenge = "" }) => {
    const answer = await send(app.url, { ...sent(keys), target: "/read" });
    expect(answer.status).toBe(SERVICE_STATUSES[name] ?? status);
    if (answer.status === 200) return;
    expect(answer.header("WWW-Authenticate")).toMatch(/^Bearer /);
    if (answer.status === status) expect(answer.header("WWW-Authenticate")).toContain(challenge);
  });

  test("names the required scopes, unless the challenge cannot contain one", async () => {
    expect(await get("/scoped", { "x-api-key": secret })).toMatchObject({
      status: 403,
      challenge: `Bearer realm="api", error="insufficient_scope", error_description="${LACKS}", scope="read write"`,
      body: { error: { status: "PERMISSION_DENIED", message: `${LACKS}: write` } },
    });
    expect(await get("/write", { "x-api-key": secret })).toMatchObject({
      status: 403,
      challenge: `Bearer realm="books", error="insufficient_scope", error_description="${LACKS}"`,
      body: { error: { message: `${LACKS}: a"b` } },
    });
    const { secret: able } = await issue(suite.rest, { scopes: ["read", 'a"b', "more"] });
    expect(await get("/write", { "x-api-key": able })).toMatchObject({ status: 200 });
  });

  test("a restricted key is admitted from its addresses only, by the peer or by what a trusted proxy says", async () => {
    const cidrs = { ip_restriction: { allowed_cidrs: ["192.0.2.0/24"] } };
    const [{ secret: remote }, { secret: local }] = await Promise.all([
      issue(suite.rest, cidrs),
      issue(suite.rest, { ip_restriction: { allowed_cidrs: ["127.0.0.1/32"] } }),
    ]);
    const from = (path: string, secret: string, address?: string) =>
      get(path, { "x-api-key": secret, ...(address !== undefined && { "x-forwarded-for": address }) });
    expect(await from("/", local)).toMatchObject({ status: 200 });
    expect(await from("/behind-proxy", remote, "192.0.2.1")).toMatchObject({ status: 200 });
    const unknown = await get("/", { "x-api-key": "unknown" });
    expect(unknown.status).toBe(401);
    // As if it did not exist.
    expect(await from("/", remote, "192.0.2.1")).toEqual(unknown);
    expect(await from("/behind-proxy", remote, "198.51.100.1")).toEqual(unknown);
    expect(await from("/behind-proxy", local, "192.0.2.1")).toEqual(unknown);
  });

  test("denies access when the credential cannot be verified", async () => {
    expect(await get("/unreachable", { "x-api-key": secret })).toMatchObject({
      status: 503,
      challenge: null,
      retryAfter: "1",
      body: { error: { status: "UNAVAILABLE" } },
    });
  });

  test("provides the metadata of the key", async () => {
    const { secret: paid } = await issue(suite.rest, { metadata: { plan: "paid" } });
    expect(await get("/", { "x-api-key": paid })).toMatchObject({ body: { actor: "actor_1", plan: "paid" } });
  });

  test("reports why verification failed, without the credential", async () => {
    reports.length = 0;
    for (let at = 0; at < 2; at++) await get("/reported", { "x-api-key": secret });
    expect(reports).toHaveLength(2);
    const [{ error, path } = { error: new Error(), path: "" }] = reports;
    expect(path).toBe("/reported");
    expect(error.message).toMatch(
      /^the call to Keyhold failed: .*http:\/\/127\.0\.0\.1:\d+ is unreachable: .*ECONNREFUSED/,
    );
    expect(error.cause).toBeInstanceOf(ConnectError);
    expect(inspect(error)).not.toContain(secret);
  });

  test("warns by default, once in ten seconds", async () => {
    const warnings: Error[] = [];
    const listener = (warning: Error) => void warnings.push(warning);
    process.on("warning", listener);
    onTestFinished(() => void process.off("warning", listener));
    const quiet = await start(createKeyVerifier({ baseUrl: suite.server.url }));
    onTestFinished(async () => void (await quiet.close()));
    const ask = () => fetch(`${quiet.url}/unreachable`, { headers: { "x-api-key": secret, connection: "close" } });
    expect([(await ask()).status, (await ask()).status]).toEqual([503, 503]);
    expect(warnings.map(({ name }) => name)).toEqual(["KeyholdWarning"]);
    expect(warnings[0]?.message).toMatch(
      /^responded with 503 to a request: the call to Keyhold failed: .*ECONNREFUSED/,
    );
  });

  test("detects a revocation at once", async () => {
    const { secret: short, keyId } = await issue(suite.rest);
    expect(await get("/", { "x-api-key": short })).toMatchObject({ status: 200 });
    await revoke(suite.rest, keyId);
    expect(await get("/", { "x-api-key": short })).toMatchObject({ status: 401 });
  });
});

test("the default warning repeats after ten seconds", async () => {
  const warnings: string[] = [];
  const listener = ({ message }: Error) => void warnings.push(message);
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  let now = 0;
  const warn = warnAtIntervals(() => now);
  for (now of [0, 9_999, 10_000]) warn(new Error(`at ${now}`));
  await setImmediate();
  expect(warnings).toEqual([expect.stringContaining("at 0 "), expect.stringContaining("at 10000 ")]);
});

test("unreadable signing keys are reported as the cause", async () => {
  const verifier = createTokenVerifier({ baseUrl: `http://127.0.0.1:${await freePort()}` });
  const token = [{ alg: "EdDSA", typ: "JWT", kid: "k" }, {}]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .concat("A".repeat(86))
    .join(".");
  const errors: Error[] = [];
  const admit = createAdmission(verifier, { onError: (error) => errors.push(error) });
  await admit({ headers: { "x-api-key": token }, socket: {} });
  expect(errors.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^the signing keys cannot be read: .*ECONNREFUSED/),
  ]);
});

test("denies access when the verifier throws", async () => {
  const broken: Verifier = { verify: () => Promise.reject(new Error("broken")) };
  const app = await startExpress(broken);
  expect((await fetch(app.url, { headers: { "x-api-key": "x", connection: "close" } })).status).toBe(500);
  await app.close();
});

/** A credential of a key that may not be used here, and the response to it. */
const REJECTED = table([
  ["DISABLED", 401, "invalid_token", "the credential is disabled"],
  // The same as for an unknown one.
  ["IP_NOT_ALLOWED", 401, "invalid_token", "the credential is not valid"],
  ["AUDIENCE_MISMATCH", 401, "invalid_token", "the credential is not for this service"],
  ["REVOKED", 401, "invalid_token", "the credential is revoked"],
  ["EXPIRED", 401, "invalid_token", "the credential has expired"],
  ["NOT_FOUND", 401, "invalid_token", "the credential is not valid"],
  ["SIGNATURE_INVALID", 401, "invalid_token", "the credential is not valid"],
  ["INVALID_FORMAT", 401, "invalid_token", "the credential is malformed"],
  ["INSUFFICIENT_SCOPE", 403, "insufficient_scope", "the credential lacks a required scope"],
] as const);

/** An attribute of a challenge, with the characters that RFC 6750 §3 allows. */
const ATTRIBUTE = /^(?:realm="[^"]*"|(?:error|error_description|scope)="[\x20-\x21\x23-\x5b\x5d-\x7e]+")$/;

test.for(REJECTED)("the response to %s is by RFC 6750", async ([reason, status, error, message]) => {
  const rejection = { ok: false, reason, message: "for the log", missingScopes: ["write"] } as const;
  const admission = await createAdmission({ verify: async () => rejection }, SCOPED)(requestFrom("127.0.0.1"));
  if (admission.admitted) throw new Error("it was admitted");
  expect(admission.status).toBe(status);
  const [scheme, challenge = ""] = admission.headers["www-authenticate"]?.split(/ (.*)/) ?? [];
  const attributes = challenge.split(", ");
  expect(scheme).toBe("Bearer");
  expect(attributes.filter((attribute) => !ATTRIBUTE.test(attribute))).toEqual([]);
  const scope = status === 403 ? ['scope="read write"'] : [];
  expect(attributes).toEqual(['realm="api"', `error="${error}"`, `error_description="${message}"`, ...scope]);
  expect(admission.body.error.message).toMatch(message);
});

/** Returns a request with a credential. */
function requestFrom(remoteAddress: string | undefined, headers: Record<string, string> = {}) {
  return { headers: { "x-api-key": "x", ...headers }, socket: { remoteAddress } };
}

test("a verifier receives where the credential is presented", async () => {
  const presentations: unknown[] = [];
  const verifier: Verifier = {
    verify: async (_, presentation) => {
      presentations.push(presentation);
      return { ok: true, credential: { keyId: "k", actorId: "a", scopes: ["read"], issuer: "i" } };
    },
  };
  expect(await createAdmission(verifier, { audience: "books" })(requestFrom("192.0.2.1"))).toMatchObject({
    admitted: true,
  });
  // It ignores the scopes.
  expect(await createAdmission(verifier, SCOPED)(requestFrom(undefined))).toMatchObject({ status: 403 });
  expect(presentations).toEqual([
    { clientIp: "192.0.2.1", requiredScopes: [], audience: "books" },
    { clientIp: "", ...SCOPED, audience: undefined },
  ]);
});

test.for<[string, AdmissionOptions]>([
  ["requiredScopes", { requiredScopes: ["two words"] }],
  ["requiredScopes", { requiredScopes: [""] }],
  ["requiredScopes", { requiredScopes: Array.from({ length: 33 }, (_, place) => `s${place}`) }],
  ["audience", { audience: "" }],
  ["audience", { audience: "bücher" }],
  ["realm", { realm: "a\nb" }],
  ["trustedProxies", { trustedProxies: ["10.0.0.1/8"] }],
  ["trustedProxies", { trustedProxies: ["0.0.0.0/1", "128.0.0.0/1"] }],
])("refuses options that no request could meet: %s", ([name, options]) => {
  expect(() => createAdmission(unreachable, options)).toThrow(new RegExp(`^${name}: `));
});
