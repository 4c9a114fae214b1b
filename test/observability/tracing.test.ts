import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { type Collector, type Span, startCollector } from "../support/collector.ts";
import { check, describeRequest } from "../support/ext-authz.ts";
import { introspect } from "../support/introspect.ts";
import { type Ended, type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { type Json, paths } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { send } from "../support/wire.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLER = "b7ad6b7169203331";
const HEADERS = { "content-type": "application/json", traceparent: `00-${TRACE}-${CALLER}-01` };
const CREATE = "keyhold.v2alpha1.IssuedApiKeysService/CreateIssuedApiKey";
const VERIFY = "keyhold.v2alpha1.ApiKeysService/VerifyApiKey";
const SERVER = 2;
const CLIENT = 3;

let database: TestDatabase;
let collector: Collector;
let ended: Ended;
let spans: Span[];

/** A server that records every loaded module in a file. */
async function serveNoting(name: string, environment: Record<string, string>) {
  const file = join(inject("testDir"), `modules-${name}-${process.pid}`);
  const program = `import { registerHooks } from "node:module"; import { appendFileSync } from "node:fs";
    registerHooks({ load: (url, context, next) => { appendFileSync(${JSON.stringify(file)}, url + "\\n"); return next(url, context); } });`;
  const hook = `data:text/javascript,${encodeURIComponent(program)}`;
  const server = await serve({
    NODE_OPTIONS: `--import=${hook}`,
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    KEYHOLD_METRICS_PORT: "0",
    ...environment,
  });
  return { server, modules: () => readFileSync(file, "utf8") };
}

const post = (server: Serving, path: string, body: Json) =>
  send(server.url + path, "POST", JSON.stringify(body), HEADERS);

beforeAll(async () => {
  [database, collector] = await Promise.all([createTestDatabase(), startCollector()]);
  const { server, modules } = await serveNoting("on", {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: "keys",
    KEYHOLD_GATEWAYS: "ext-authz",
  });
  const made = await post(server, paths.issued, { name: "a", actor_id: "a" });
  const credential = made.body.secret;
  await post(server, `${paths.keys}:verify`, { credential });
  await post(server, `${paths.keys}:verify`, { credential });
  await post(server, `${paths.keys}:verify`, { credential: 1 });
  await send(`${server.url}/${VERIFY}`, "POST", JSON.stringify({ credential }), {
    ...HEADERS,
    "content-encoding": "identity",
  });
  const { traceparent } = HEADERS;
  await introspect(server, { token: credential }, { traceparent });
  await introspect(server, {}, { traceparent });
  const asked = describeRequest({ path: `/${credential}`, headers: [["Authorization", `Bearer ${credential}`]] });
  await check(server, asked, { traceparent });
  server.kill("SIGTERM");
  ended = await server.ended;
  spans = collector.spans();
  expect(modules()).toContain("/@opentelemetry/sdk-trace/");
});

afterAll(async () => {
  collector.close();
  await database.drop();
});

const named = (name: string) => spans.filter((span) => span.name === name);

test("a call is a span of the caller's trace, named after its RPC", () => {
  const [span] = named(CREATE);
  expect(span).toMatchObject({ traceId: TRACE, parentId: CALLER, kind: SERVER });
  expect(span?.attributes).toMatchObject({
    "rpc.method": CREATE,
    "rpc.system.name": "rest",
    "rpc.response.status_code": "OK",
  });
  expect(span?.resource).toMatchObject({ "service.name": "keys" });
});

test("introspection has a span like an RPC", () => {
  const found = named("keyhold.v2alpha1.Introspection/Introspect");
  expect(found).toMatchObject(Array(2).fill({ traceId: TRACE, parentId: CALLER, kind: SERVER }));
  const codes = found.map(({ attributes }) => attributes["rpc.response.status_code"]);
  expect(codes.toSorted()).toEqual(["INVALID_ARGUMENT", "OK"]);
  expect(found.map(({ attributes }) => attributes["keyhold.cache.hit"])).toContain(true);
});

test("ext_authz has a span like an RPC, without the request of the client", () => {
  const [span] = named("envoy.service.auth.v3.Authorization/Check");
  expect(span).toMatchObject({ traceId: TRACE, parentId: CALLER, kind: SERVER });
  expect(span?.attributes).toMatchObject({ "rpc.system.name": "grpc", "rpc.response.status_code": "OK" });
  expect(JSON.stringify(span)).not.toContain("kh_v1_");
});

test("statements are child spans without their text", () => {
  const [span] = named(CREATE);
  const [insert] = named("keys.insert");
  expect(insert).toMatchObject({ traceId: TRACE, parentId: span?.spanId, kind: CLIENT });
  expect(insert?.attributes).toEqual({ "db.system.name": "postgresql", "db.query.summary": "keys.insert" });
});

test("a verification span has the cache result and the status, over each protocol", () => {
  const told = named(VERIFY).map(({ attributes }) => [
    attributes["rpc.system.name"],
    attributes["rpc.response.status_code"],
    attributes["keyhold.cache.hit"],
  ]);
  expect(told).toEqual([
    ["rest", "OK", false],
    ["rest", "OK", true],
    ["rest", "INVALID_ARGUMENT", undefined],
    ["connectrpc", "OK", true],
  ]);
  expect(named("keys.find")).toHaveLength(1);
});

test("the log line has the trace id", () => {
  const lines: Json[] = ended.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const calls = lines.filter(({ rpc }) => rpc !== undefined);
  expect(calls).toHaveLength(8);
  for (const { trace_id } of calls) expect(trace_id).toBe(TRACE);
});

test("loads OpenTelemetry only if configured, and metrics only when scraped", async () => {
  const { server, modules } = await serveNoting("off", {});
  await post(server, `${paths.keys}:verify`, { credential: "a" });
  expect(modules()).toContain(pathToFileURL("/").href);
  expect(modules()).not.toMatch(/opentelemetry|prom-client/);
  server.kill("SIGKILL");
  await server.ended;
});
