import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, restClient } from "../support/rest.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { REST_ROUTES, RPCS, rpcPath } from "../support/wire.ts";
import { connectionManager, envoyRoutes, files, nginx, read } from "./files.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const named = (pattern: RegExp) => [...new Set(files.flatMap((file) => read(file).match(pattern) ?? []))];

test("the paths of health are served", async () => {
  const paths = named(/\/health\/[a-z]+/g);
  expect(paths.sort()).toEqual(["/health/alive", "/health/ready"]);
  for (const path of paths) expect(await restClient(server)("GET", path)).toMatchObject({ status: 200 });
});

test("the paths that Envoy treats apart are those of RPCs", () => {
  const known = new Set([...REST_ROUTES.map(({ path }) => path("{key_id}")), ...RPCS.map(rpcPath)]);
  const [virtualHost] = connectionManager.route_config.virtual_hosts;
  const paths: string[] = virtualHost.routes.flatMap(({ match }: Json) => match.path ?? []);
  expect(paths).toHaveLength(5);
  expect(paths.filter((path) => !known.has(path))).toEqual(["/grpc.health.v1.Health/Watch"]);
});

test("the paths that nginx treats apart are those of RPCs", () => {
  const known = [...REST_ROUTES.map(({ path }) => path("{key_id}")), ...RPCS.map(rpcPath)];
  const patterns = [...nginx.matchAll(/location ~ (\S+) \{/g)].map(([, pattern = ""]) => new RegExp(pattern));
  expect(patterns.map((pattern) => known.filter((path) => pattern.test(path)).length)).toEqual([4, 2]);
});
test("no log of those in front has what may be a secret", () => {
  const formats = `${/^log_format[^;]*;/ms.exec(nginx)?.[0]}${JSON.stringify(connectionManager.access_log)}`;
  expect(formats).toContain("$status");
  expect(formats).toContain("%RESPONSE_CODE%");
  expect(formats).not.toMatch(/authorization|\$request\b|\$(?:request_)?uri|\$args|\$http_|request_body|:PATH|COOKIE/i);
});

test("those in front wait longer than Keyhold waits for its database", () => {
  const seconds = [...nginx.matchAll(/^ *(?:proxy|grpc)_(?:read|send)_timeout (\d+)s;/gm)].map(([, text]) =>
    Number(text),
  );
  expect(seconds).toHaveLength(4);
  const ofEnvoy = envoyRoutes.map(({ route }) => Number.parseInt(route.timeout, 10)).filter((timeout) => timeout > 0);
  expect(ofEnvoy.length).toBeGreaterThan(5);
  expect(Math.min(...seconds, ...ofEnvoy)).toBeGreaterThan(11);
});
