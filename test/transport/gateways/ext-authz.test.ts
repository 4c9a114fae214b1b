import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, test } from "vitest";
import { Authorization, CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { ServerReflection } from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health, HealthCheckResponse_ServingStatus } from "../../../gen/health/v1/health_pb.js";
import { revoke, table } from "../../support/conformance.ts";
import { type EnvoyCheck, encodeCheck } from "../../support/envoy-protos.ts";
import { check, type Described, decisionOf, describeRequest } from "../../support/ext-authz.ts";
import { type Fields, fields } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { lastRequest } from "../../support/log-lines.ts";
import { readRateLimitFields } from "../../support/rate-limit-fields.ts";
import { issue } from "../../support/rest.ts";
import { callGrpc, frame, rpcPath } from "../../support/wire.ts";

const ON = { KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAYS: "ext-authz" };
const suite = useGuardedService(() => ({
  ...ON,
  ...{
    KEYHOLD_GATEWAY_METADATA: "plan_id,none",
    KEYHOLD_GATEWAY_CREDENTIALS: "bearer,header:x-api-key,query:key,cookie:key",
  },
  KEYHOLD_TRUSTED_PROXIES: "10.0.0.0/8, fd00::/8",
}));

let key: { readonly keyId: string; readonly secret: string };
beforeAll(async () => {
  key = await issue(suite.rest, { actor_id: "team 1", scopes: ["read", "write"], metadata: { plan_id: "p=1%\r\nä" } });
});

const token = () => ({ authorization: `Bearer ${suite.token("keyhold:verify")}` });
const ask = (described: Described = {}) => check(suite.server, describeRequest(described), token());
const bearer = (credential: string): Fields => [["Authorization", `Bearer ${credential}`]];

test("a key whose limit is exceeded is denied with 429", async () => {
  const { secret } = await issue(suite.rest, { quotas: [{ name: "monthly", limit: 3, period: "QUOTA_PERIOD_MONTH" }] });
  const request = { headers: bearer(secret), extensions: { charges: "monthly:2" } };
  for (const remaining of [3, 1]) {
    const charges = `monthly:${remaining === 3 ? 0 : 2}`;
    const accepted = await ask({ ...request, extensions: { charges } });
    const { policies, states } = readRateLimitFields(new Headers(accepted.added));
    expect([accepted.status, policies, states]).toEqual([
      ...[200, { monthly: { q: 3 } }, { monthly: { r: remaining, t: expect.any(Number) } }],
    ]);
  }
  const denied = await ask(request);
  expect(denied).toMatchObject({
    code: Code.ResourceExhausted,
    status: 429,
    reason: "VERIFICATION_ERROR_QUOTA_EXCEEDED",
  });
  expect(denied.headers).toMatchObject({
    "ratelimit-policy": '"monthly";q=3',
    "retry-after": expect.stringMatching(/^\d+$/),
  });
});

test.each([true, false])("a valid credential is answered with its identity; raw headers: %s", async (isRaw) => {
  expect(await ask({ headers: bearer(key.secret), isRaw })).toEqual({
    ...{ code: 0, status: 200, removed: [], text: "", reason: undefined },
    headers: {
      "x-keyhold-key-id": key.keyId,
      "x-keyhold-actor-id": "team%201",
      "x-keyhold-scopes": "read write",
      "x-keyhold-metadata-plan-id": "p=1%25%0D%0A%C3%A4",
      "x-keyhold-metadata-none": "",
    },
    metadata: {
      key_id: key.keyId,
      actor_id: "team 1",
      scopes: ["read", "write"],
      metadata: { plan_id: "p=1%\r\nä", none: "" },
    },
  });
});

test("a denial has the status, headers and body for the client", async () => {
  const { keyId, secret } = await issue(suite.rest);
  expect((await ask({ headers: bearer(secret) })).status).toBe(200);
  await revoke(suite.rest, keyId);
  const { text, ...denied } = await ask({ headers: bearer(secret) });
  expect(denied).toMatchObject({ code: Code.Unauthenticated, status: 401, reason: "VERIFICATION_ERROR_REVOKED" });
  expect(denied.metadata).toBeUndefined();
  expect(denied.headers).toEqual({
    "cache-control": "no-store",
    "content-type": "application/json; charset=utf-8",
    "www-authenticate": 'Bearer realm="keyhold", error="invalid_token", error_description="the key is revoked"',
  });
  expect(JSON.parse(text).error).toMatchObject({ code: 401, status: "UNAUTHENTICATED" });
});

describe("places of the credential", () => {
  const PLACES = table<readonly [string, () => Described, number]>([
    ["X-Api-Key", () => ({ headers: [["X-Api-Key", key.secret]] }), 200],
    ["the query of the path", () => ({ path: `/a?b=c&key=${key.secret}` }), 200],
    ["a cookie", () => ({ headers: [["Cookie", `a=b; key=${key.secret}`]] }), 200],
    ["a header of another name", () => ({ headers: [["X-Key", key.secret]] }), 401],
    ["two places with the same", () => ({ headers: [...bearer(key.secret), ["X-Api-Key", key.secret]] }), 200],
    ["two places with different ones", () => ({ headers: [...bearer(key.secret), ["X-Api-Key", "other"]] }), 400],
  ]);
  test.for(PLACES)("%s", async ([, described, status]) => {
    for (const isRaw of [true, false]) expect((await ask({ ...described(), isRaw })).status).toBe(status);
  });

  const AMBIGUOUS = table<readonly [string, () => Fields]>([
    ["two fields with the same credential", () => [...bearer(key.secret), ...bearer(key.secret)]],
    ["two fields, the second one empty", () => fields(`X-Api-Key: ${key.secret}`, "X-Api-Key: ")],
    ["two fields, the first one empty", () => fields("X-Api-Key: ", `X-Api-Key: ${key.secret}`)],
    ["a comma after the credential", () => bearer(`${key.secret},`)],
    ["a comma between two", () => bearer(`${key.secret}, Bearer x`)],
    ["a comma in a cookie", () => [["Cookie", `key=${key.secret},key=x`]]],
    ["a byte above ASCII", () => [["X-Api-Key", `${key.secret}\u00e9`]]],
  ]);
  test.for(AMBIGUOUS)("%s is refused", async ([, headers]) => {
    for (const isRaw of [true, false])
      expect(await ask({ headers: headers(), isRaw })).toMatchObject({ status: 400, code: Code.InvalidArgument });
  });

  test("the raw list counts, and the map beside it does not", async () => {
    const raw = describeRequest({ headers: bearer(key.secret) });
    const http = raw.attributes?.request?.http;
    if (http === undefined) throw new Error("no request");
    expect(await check(suite.server, withHttp({ ...http, headers: { "x-api-key": "other" } }), token())).toMatchObject({
      status: 200,
    });
    const empty = { ...http, headerMap: { headers: [] }, headers: { "x-api-key": key.secret } };
    expect(await check(suite.server, withHttp(empty), token())).toMatchObject({ status: 401 });
  });
});

function withHttp(http: object): EnvoyCheck {
  return { attributes: { request: { http } } };
}

describe("requirements of the route", () => {
  const ROWS = table<readonly [string, Record<string, string>, number]>([
    ["no requirement", {}, 200],
    ["scopes that the key has", { required_scopes: "read, write" }, 200],
    ["a scope that it does not have", { required_scopes: "read admin" }, 403],
    ["an audience, which a key does not have", { audience: "orders" }, 200],
    ["an empty list", { required_scopes: "" }, 400],
    ["an empty audience", { audience: "" }, 400],
    ["an unknown key", { required_scope: "read" }, 400],
    ["another spelling", { requiredScopes: "read" }, 400],
    ["a name of JavaScript", { constructor: "read" }, 400],
  ]);
  test.for(ROWS)("%s", async ([, extensions, status]) => {
    expect((await ask({ headers: bearer(key.secret), extensions })).status).toBe(status);
  });

  test("they are not read from the client", async () => {
    const { secret } = await issue(suite.rest, { scopes: ["write"] });
    const headers: Fields = [...bearer(secret), ["required_scopes", "write"], ["x-keyhold-required-scopes", "write"]];
    const answer = await ask({ headers, path: "/?required_scopes=write", extensions: { required_scopes: "read" } });
    expect(answer).toMatchObject({ status: 403, reason: "VERIFICATION_ERROR_INSUFFICIENT_SCOPE" });
    expect(answer.headers["www-authenticate"]).toBe('Bearer realm="keyhold", error="insufficient_scope", scope="read"');
  });
});

test("names of the client that an application may take for ours are removed, unless they are set", async () => {
  const names = [
    ...[
      "X-Keyhold-Key-Id",
      "x_keyhold_key_id",
      "X.Keyhold.Actor.Id",
      "x-keyhold_scopes",
      "X-Keyhold-Future",
      "x~keyhold~a",
    ],
    ...["X-Keyhold-Authorization", "X_KEYHOLD_AUTHORIZATION", "x-keyhold-metadata-plan-id"],
  ];
  const headers: Fields = [
    ...bearer(key.secret),
    ...names.map((name) => [name, "spoofed"] as const),
    ["x-keyholder-a", "b"],
  ];
  for (const isRaw of [true, false]) {
    const answer = await ask({ headers: [...headers, ["X-Keyhold-Future", "again"]], isRaw });
    expect(answer.removed.toSorted()).toEqual([
      "x-keyhold-authorization",
      "x-keyhold-future",
      "x-keyhold_scopes",
      "x.keyhold.actor.id",
      "x_keyhold_authorization",
      "x_keyhold_key_id",
      "x~keyhold~a",
    ]);
    expect(answer.headers).toMatchObject({
      "x-keyhold-key-id": key.keyId,
      "x-keyhold-metadata-plan-id": "p=1%25%0D%0A%C3%A4",
    });
  }
  expect((await ask({ headers: bearer(key.secret) })).removed).toEqual([]);
});

describe("a message without what a decision needs is denied", () => {
  const ROWS = table<readonly [string, () => EnvoyCheck]>([
    ["nothing", () => ({})],
    ["no request", () => ({ attributes: {} })],
    [
      "a connection, of the network filter",
      () => ({ attributes: { ...describeRequest().attributes, request: undefined } }),
    ],
    ["no HTTP request", () => ({ attributes: { request: {} } })],
  ]);
  test.for(ROWS)("%s", async ([, request]) => {
    expect(await check(suite.server, request(), token())).toMatchObject({ status: 400, reason: "INVALID_ARGUMENT" });
  });

  test("no headers", async () => {
    expect(await check(suite.server, withHttp({}), token())).toMatchObject({ status: 401 });
  });
});

test("a message above 1 MiB, such as with the body of a request, is an error", async () => {
  const request = withHttp({ body: "a".repeat(2 ** 20) });
  await expect(check(suite.server, request, token())).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

/** By the fast path, and by the complete one, which serves large messages. */
describe.each([0, 150_000])("a message that cannot be decoded, with a path of %i more characters,", (length) => {
  const withPath = () =>
    describeRequest({ path: `/${"a".repeat(length)}`, headers: [["x-cut", "LATIN"]], isRaw: false });
  const encoded = () => encodeCheck(withPath());
  const send = async (message: Buffer, metadata: Record<string, string>) => {
    const { data } = await callGrpc(suite.server.url, rpcPath(Authorization.method.check), frame(message), metadata);
    return decisionOf(fromBinary(CheckResponseSchema, data.subarray(5)));
  };

  test.each([
    [
      "invalid UTF-8 in the header map",
      (message: Buffer) => message.fill(0xff, message.indexOf("LATIN"), message.indexOf("LATIN") + 2),
    ],
    ["its end missing", (message: Buffer) => message.subarray(0, -3)],
  ])("is denied: %s", async (_, damage) => {
    expect(await send(damage(encoded()), token())).toMatchObject({ status: 400, reason: "INVALID_ARGUMENT" });
    await expect.poll(lastLine).toMatchObject({ code: "INVALID_ARGUMENT" });
  });

  test("is not decoded for a gateway that is refused", async () => {
    const denied = { status: 503, reason: "CALLER_NOT_PERMITTED" };
    expect(await send(encoded().subarray(0, -3), { authorization: "Bearer x" })).toMatchObject(denied);
  });
});

test.each([
  [8192, "VERIFICATION_ERROR_NOT_FOUND"],
  [8193, "VERIFICATION_ERROR_INVALID_FORMAT"],
])("a credential of %i characters: %s", async (length, reason) => {
  expect(await ask({ headers: bearer("a".repeat(length)) })).toMatchObject({ status: 401, reason });
});

test("large headers are no problem", async () => {
  const cookies: Fields = Array.from({ length: 100 }, (_, index) => [`x-filler-${index}`, "é".repeat(5000)] as const);
  expect((await ask({ headers: [...cookies, ...bearer(key.secret)] })).status).toBe(200);
  expect((await ask({ headers: [...cookies, ...bearer("a".repeat(100_000))] })).status).toBe(401);
});

describe("the address of the client", () => {
  let restricted: string;
  beforeAll(async () => {
    restricted = (await issue(suite.rest, { ip_restriction: { allowed_cidrs: ["203.0.113.7", "2001:db8::/32"] } }))
      .secret;
  });
  const EXTERNAL = "X-Envoy-External-Address";
  const XFF = "X-Forwarded-For";
  const [CLIENT, OTHER, PROXY] = ["203.0.113.7", "203.0.113.8", "10.1.2.3"];
  /** The source, and the values of the two headers, each in a field of its own. */
  const ROWS = table<readonly [string, string, external: string[], forwarded: string[], isAllowed: boolean]>([
    ["the peer of Envoy", CLIENT, [], [], true],
    ["the peer over IPv6", "2001:db8::1", [], [], true],
    ["the peer, mapped into IPv6", `::ffff:${CLIENT}`, [], [], true],
    ["another peer", OTHER, [], [], false],
    ["another peer that names an external address", OTHER, [CLIENT], [], false],
    ["another peer that names a client", OTHER, [], [CLIENT], false],
    ["another peer that names both", OTHER, [CLIENT], [CLIENT], false],
    ["a trusted proxy with an external address", PROXY, [CLIENT], [], true],
    ["a trusted proxy with its client", PROXY, [], [`${CLIENT}, ${PROXY}`], true],
    ["a trusted proxy over IPv6", "fd00::1", ["2001:db8:0::5"], ["2001:db8::5, fd00::1"], true],
    ["a trusted proxy, with both in agreement", PROXY, [CLIENT], [`1.2.3.4, ${CLIENT},${PROXY}`], true],
    ["a trusted proxy, the external address spoofed", PROXY, [CLIENT], [`198.51.100.9, ${PROXY}`], false],
    ["a trusted proxy, the list spoofed on the left", PROXY, [], [`${CLIENT}, 198.51.100.9, ${PROXY}`], false],
    ["a trusted proxy, with two fields", PROXY, [], [CLIENT, `198.51.100.9, ${PROXY}`], false],
    ["a trusted proxy, with two external addresses", PROXY, [CLIENT, CLIENT], [], false],
    ["a trusted proxy without either", PROXY, [], [], false],
    ["a trusted proxy with no address", PROXY, ["unknown"], [], false],
    ["a trusted proxy with a name", PROXY, ["localhost"], [CLIENT], false],
    ["no address", "", [CLIENT], [CLIENT], false],
    ["a path of a Unix socket", "/run/a", [CLIENT], [], false],
  ]);
  test.for(ROWS)("%s", async ([, source, external, forwarded, isAllowed]) => {
    const named = [
      ...external.map((value) => `${EXTERNAL}: ${value}`),
      ...forwarded.map((value) => `${XFF}: ${value}`),
    ];
    // Headers that are not read.
    const headers = [...bearer(restricted), ...fields(...named, `X-Real-IP: ${CLIENT}`, `Forwarded: for=${CLIENT}`)];
    const denied = { status: 403, reason: "VERIFICATION_ERROR_IP_NOT_ALLOWED" };
    for (const isRaw of [true, false])
      expect(await ask({ source, headers, isRaw })).toMatchObject(isAllowed ? { status: 200 } : denied);
  });

  test("without a source, or from a Unix socket, there is none", async () => {
    const headers = [...bearer(restricted), ...fields(`${EXTERNAL}: ${CLIENT}`, `${XFF}: ${CLIENT}`)];
    const { attributes } = describeRequest({ headers });
    const pipe = { address: { pipe: { path: CLIENT } } };
    for (const source of [undefined, {}, { address: {} }, pipe]) {
      const answer = await check(suite.server, { attributes: { ...attributes, source } }, token());
      expect(answer).toMatchObject({ status: 403, reason: "VERIFICATION_ERROR_IP_NOT_ALLOWED" });
    }
  });
});

const lastLine = () => lastRequest(suite.server.log());

const rpc = "envoy.service.auth.v3.Authorization/Check";

test("the log has the decision, the caller and the key", async () => {
  await ask({ headers: bearer(key.secret) });
  const common = { rpc, protocol: "grpc", status: 200, caller: expect.stringMatching(/^admin-token:/) };
  await expect.poll(lastLine).toMatchObject({ ...common, code: "OK", verdict: "VALID", key_id: key.keyId });
  await ask({});
  await expect.poll(lastLine).toMatchObject({ ...common, code: "UNAUTHENTICATED", verdict: "MISSING" });
  await ask({ extensions: { a: "b" } });
  await expect.poll(lastLine).toMatchObject({ ...common, code: "INVALID_ARGUMENT" });
});

describe("a gateway", () => {
  const client = () => describeRequest({ headers: bearer(key.secret) });
  const verify = () => `Bearer ${suite.token("keyhold:verify")}`;
  const ACCEPTED = table<readonly [string, () => Record<string, string>]>([
    ["a token in authorization", () => ({ authorization: verify() })],
    ["a token in x-keyhold-authorization", () => ({ "x-keyhold-authorization": verify() })],
    ["a token with a scope that includes it", () => ({ authorization: `Bearer ${suite.token("keyhold:admin")}` })],
  ]);
  test.for(ACCEPTED)("is known by %s", async ([, metadata]) => {
    expect(await check(suite.server, client(), metadata())).toMatchObject({ status: 200 });
  });

  const REFUSED = table<readonly [string, () => Record<string, string>]>([
    ["no token", () => ({})],
    ["an unknown token", () => ({ authorization: "Bearer kh_v1_nonsense" })],
    ["a token with another scope", () => ({ authorization: `Bearer ${suite.token("keyhold:keys.read")}` })],
    ["the credential of its client", () => ({ authorization: `Bearer ${key.secret}` })],
    ["another scheme", () => ({ authorization: `Basic ${btoa(`a:${suite.token("keyhold:verify")}`)}` })],
    ["a wrong token beside a right one", () => ({ authorization: "Bearer x", "x-keyhold-authorization": verify() })],
  ]);
  test.for(REFUSED)("with %s gets a denial, and no challenge for its client", async ([, metadata]) => {
    const answer = await check(suite.server, client(), metadata());
    expect(answer).toMatchObject({
      code: Code.Unavailable,
      status: 503,
      reason: "CALLER_NOT_PERMITTED",
      removed: [],
    });
    expect(Object.keys(answer.headers).toSorted()).toEqual(["cache-control", "content-type", "retry-after"]);
    await expect.poll(lastLine).toMatchObject({ rpc, code: "PERMISSION_DENIED", reason: expect.any(String) });
  });

  test("a token of the client is not that of the gateway", async () => {
    const headers: Fields = [...bearer(suite.token("keyhold:verify")), ["x-keyhold-authorization", verify()]];
    expect(await check(suite.server, describeRequest({ headers }))).toMatchObject({
      status: 503,
      reason: "CALLER_NOT_PERMITTED",
    });
  });

  test("that keeps asking with a wrong token is limited", async () => {
    await suite.server.restart({ ...ON, KEYHOLD_FAILURE_RATE: "1" });
    const answers = [];
    for (let call = 0; call < 15; call++)
      answers.push(await check(suite.server, client(), { authorization: "Bearer x" }));
    expect(answers.at(-1)).toMatchObject({ code: Code.Unavailable, status: 503, reason: "RATE_LIMITED" });
    expect(answers.at(-1)?.headers["retry-after"]).toMatch(/^\d+$/);
  });

  test("is known by its network", async () => {
    await suite.server.restart({ ...ON, KEYHOLD_GATEWAY_CALLERS: "network", KEYHOLD_GATEWAY_NETWORKS: "127.0.0.9" });
    const from = (localAddress: string) => check(suite.server, client(), token(), { nodeOptions: { localAddress } });
    expect(await from("127.0.0.9")).toMatchObject({ status: 200 });
    expect(await from("127.0.0.8")).toMatchObject({ status: 503, reason: "CALLER_NOT_PERMITTED" });
  });
});

test("reflection lists it, and health knows it", async () => {
  await suite.server.restart(ON);
  const transport = createGrpcTransport({ baseUrl: suite.server.url });
  const service = "envoy.service.auth.v3.Authorization";
  const questions = async function* () {
    yield { messageRequest: { case: "listServices", value: "" } } as const;
    yield { messageRequest: { case: "fileContainingSymbol", value: `${service}.Check` } } as const;
  };
  const answers = await Array.fromAsync(createClient(ServerReflection, transport).serverReflectionInfo(questions()));
  const [list, file] = answers.map(({ messageResponse }) => messageResponse);
  expect(list?.value).toMatchObject({ service: expect.arrayContaining([expect.objectContaining({ name: service })]) });
  if (file?.case !== "fileDescriptorResponse") throw new Error(`no file but ${file?.case}`);
  const files = file.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  expect(files.flatMap(({ service: services }) => services.map(({ name }) => name))).toEqual(["Authorization"]);
  const names = files.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(files.flatMap(({ dependency }) => dependency)));
  const health = await createClient(Health, transport).check({ service });
  expect(health.status).toBe(HealthCheckResponse_ServingStatus.SERVING);
});

const UNKNOWN = { code: Code.Unimplemented };

test("a port for gateways serves it, and then that of the service does not", async () => {
  await suite.server.restart({ ...ON, KEYHOLD_GATEWAY_PORT: "0" });
  const request = describeRequest({ headers: bearer(key.secret) });
  expect(await check({ url: suite.server.gatewayUrl }, request, token())).toMatchObject({ status: 200 });
  await expect(check(suite.server, request, token())).rejects.toMatchObject(UNKNOWN);
});

test.each(["", "forward-auth"])("is off with KEYHOLD_GATEWAYS=%s", async (gateways) => {
  await suite.server.restart({ ...ON, KEYHOLD_GATEWAYS: gateways });
  await expect(check(suite.server, describeRequest(), token())).rejects.toMatchObject(UNKNOWN);
});
