import type { DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { INTROSPECT } from "../support/introspect.ts";
import { type Json, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { REST_ROUTES, RPCS, rpcPath } from "../support/wire.ts";
import { connectionManager, envoyRoutes, files, nginx, read } from "./files.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const byName = (one: DescMethodUnary, other: DescMethodUnary) => (one.name < other.name ? -1 : 1);
/** Whether a pattern matches the path of an RPC, and that by which the console calls it. */
const calledBy = (pattern: string) => (rpc: DescMethodUnary) =>
  ["", "/console/api"].every((prefix) => new RegExp(pattern).test(prefix + rpcPath(rpc)));

/** RPCs that proxies may retry. A verification records the use of a key, so its proto does not declare NO_SIDE_EFFECTS. */
const SAFE = RPCS.filter(
  ({ name, idempotency }) =>
    idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS || /^(Batch)?Verify/.test(name),
).sort(byName);

const named = (pattern: RegExp) => [...new Set(files.flatMap((file) => read(file).match(pattern) ?? []))];

test("the health paths of the proxies are served", async () => {
  const paths = named(/\/health\/[a-z]+/g);
  expect(paths.sort()).toEqual(["/health/alive", "/health/ready"]);
  for (const path of paths) expect(await restClient(server)("GET", path)).toMatchObject({ status: 200 });
});

test("the special paths of Envoy are those of RPCs and of introspection", () => {
  const known = new Set([...REST_ROUTES.map(({ path }) => path("{key_id}")), ...RPCS.map(rpcPath)]);
  const [virtualHost] = connectionManager.route_config.virtual_hosts;
  const paths: string[] = virtualHost.routes.flatMap(({ match }: Json) => match.path ?? []);
  expect(paths).toHaveLength(4);
  expect(paths.filter((path) => !known.has(path))).toEqual([INTROSPECT, "/grpc.health.v1.Health/Watch"]);
  // Envoy matches the whole path.
  const patterns = virtualHost.routes.flatMap(({ match }: Json) => match.safe_regex?.regex ?? []);
  expect(patterns.flatMap((pattern: string) => RPCS.filter(calledBy(`^${pattern}$`))).sort(byName)).toEqual(SAFE);
});

test("the special paths of nginx are those of RPCs and of introspection", () => {
  const routes = [...REST_ROUTES.map(({ path }) => path("{key_id}")), INTROSPECT];
  const patterns = [...nginx.matchAll(/location ~ (\S+) \{/g)].map(([, pattern = ""]) => pattern);
  expect(patterns.map((pattern) => routes.filter((path) => new RegExp(pattern).test(path)).length)).toEqual([3, 1]);
  const [safe, large] = patterns.map((pattern) => RPCS.filter(calledBy(pattern)).sort(byName));
  expect(safe).toEqual(SAFE);
  expect(large?.map(({ name }) => name)).toEqual(["BatchCreateImportedApiKeys"]);
});

test("the proxies append the client to X-Forwarded-For", () => {
  const values = [...nginx.matchAll(/(?:proxy|grpc)_set_header X-Forwarded-For (.*);/g)].map(([, value]) => value);
  expect(values).toEqual(Array(2).fill("$proxy_add_x_forwarded_for"));
  // Envoy appends the peer if it takes the peer for the client.
  expect(connectionManager).toMatchObject({ use_remote_address: true });
  expect(connectionManager).not.toHaveProperty("skip_xff_append", true);
});

test("no log format of a proxy has fields that may contain a secret", () => {
  const formats = `${/^log_format[^;]*;/ms.exec(nginx)?.[0]}${JSON.stringify(connectionManager.access_log)}`;
  expect(formats).toContain("$status");
  expect(formats).toContain("%RESPONSE_CODE%");
  expect(formats).not.toMatch(/authorization|\$request\b|\$(?:request_)?uri|\$args|\$http_|request_body|:PATH|COOKIE/i);
});

test("the proxies' timeouts exceed Keyhold's database timeout", () => {
  const seconds = [...nginx.matchAll(/^ *(?:proxy|grpc)_(?:read|send)_timeout (\d+)s;/gm)].map(([, text]) =>
    Number(text),
  );
  expect(seconds).toHaveLength(4);
  const ofEnvoy = envoyRoutes.map(({ route }) => Number.parseInt(route.timeout, 10)).filter((timeout) => timeout > 0);
  expect(ofEnvoy.length).toBeGreaterThan(5);
  expect(Math.min(...seconds, ...ofEnvoy)).toBeGreaterThan(11);
});
