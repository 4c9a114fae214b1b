import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { introspect } from "../../support/introspect.ts";
import { eventually, type Serving, serve } from "../../support/keyhold.ts";
import { startLoad } from "../../support/load.ts";
import { createTestDatabase, type TestDatabase } from "../../support/postgres.ts";
import type { Protocol } from "../../support/protocols/call.ts";
import { connectProtocols } from "../../support/protocols/connect.ts";
import { grpcProtocol } from "../../support/protocols/grpc.ts";
import { restProtocol } from "../../support/protocols/rest.ts";
import { paths, restClient } from "../../support/rest.ts";
import { ROOT_SECRET } from "../../support/server.ts";
import { root } from "../files.ts";
import { KINDS, type ReverseProxy, startReverseProxy } from "./reverse-proxy.ts";
import { installTools } from "./tools.ts";

const { createIssuedApiKey, getIssuedApiKey } = IssuedApiKeysService.method;
const { verifyApiKey } = ApiKeysService.method;

const certificate = readFileSync(join(root, "test/support/tls/localhost.cert.pem"));
setDefaultCACertificates([...getCACertificates(), certificate.toString()]);

let database: TestDatabase;
let servers: Serving[] = [];
beforeAll(async () => {
  await installTools();
  database = await createTestDatabase();
  servers = await Promise.all([start(), start(), start()]);
});
afterAll(async () => {
  for (const server of servers) server.kill("SIGKILL");
  await Promise.all(servers.map(({ ended }) => ended));
  await database.drop();
});

function start(port = "0"): Promise<Serving> {
  return serve({
    KEYHOLD_AUTH: "none",
    KEYHOLD_PORT: port,
    KEYHOLD_METRICS_PORT: "off",
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  });
}

async function restart(place: number): Promise<void> {
  const server = servers[place];
  if (server === undefined) throw new Error(`no server ${place}`);
  server.kill("SIGTERM");
  expect(await server.ended).toMatchObject({ code: 0 });
  servers[place] = await start(new URL(server.url).port);
}

/** Whether a log line records a call that this server answered; servers tried before it are listed before it. */
function isUseOf(host: string, line: string): boolean {
  if (!line.startsWith("{")) return false;
  const { server, status, grpc_status = "OK" } = JSON.parse(line);
  return status === 200 && grpc_status === "OK" && server.endsWith(host);
}

/** Waits until a restarted server is used again, like a rolling restart. */
function untilUsed({ log }: ReverseProxy, place: number, signal: AbortSignal): Promise<void> {
  const from = log().length;
  const { host } = new URL(servers[place]?.url ?? "");
  return eventually(async () => {
    signal.throwIfAborted();
    return log()
      .slice(from)
      .split("\n")
      .slice(1, -1)
      .some((line) => isUseOf(host, line));
  });
}

function protocolsAt(url: string): Protocol[] {
  const grpc = grpcProtocol("gRPC", new URL(url).host, credentials.createSsl(certificate));
  return [grpc, ...connectProtocols(url), restProtocol(url)];
}

async function makeKey({ name, call }: Protocol): Promise<string> {
  const made = await call(createIssuedApiKey, { name, actorId: "team_1" });
  if (!made.ok || made.message.secret === undefined) throw new Error(`${name}: ${JSON.stringify(made)}`);
  return made.message.secret;
}

/** Pause of a caller after each call, in milliseconds. */
const PAUSE = 10;

/** Continuous calls of one protocol: three verifications, then a creation, which is never duplicated. */
function loadOf({ name, call }: Protocol, credential: string) {
  let calls = 0;
  const verifyOrCreate = async () => {
    const reply =
      ++calls % 4 === 0
        ? await call(createIssuedApiKey, { name, actorId: "team_2" })
        : await call(verifyApiKey, { credential });
    return reply.ok || `${name}, ${calls % 4 === 0 ? "change" : "verify"}: ${reply.code} ${reply.message}`;
  };
  return startLoad(4, verifyOrCreate, PAUSE);
}

/** Continuous introspections. */
function introspections(proxy: ReverseProxy, token: string) {
  const ask = async () => {
    const { status, text } = await introspect(proxy, { token });
    return (status === 200 && text.startsWith('{"active":true,')) || `introspect: ${status} ${text}`;
  };
  return startLoad(4, ask, PAUSE);
}

/** Returns the count of each value. */
function countOf(texts: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(texts, (text) => text)].map(([text, all]) => [text, all.length]));
}

describe.each(Object.keys(KINDS) as (keyof typeof KINDS)[])("%s in front of three servers", (kind) => {
  let proxy: ReverseProxy;
  let protocols: Protocol[] = [];
  beforeAll(async () => {
    proxy = await startReverseProxy(kind, join(inject("testDir"), kind), servers);
    protocols = protocolsAt(proxy.url);
  });
  afterAll(async () => {
    for (const protocol of protocols) protocol.close();
    await proxy?.stop();
  });

  test("carries every protocol with its errors", async () => {
    expect(protocols.length).toBeGreaterThan(10);
    for (const protocol of protocols) {
      const credential = await makeKey(protocol);
      const verified = await protocol.call(verifyApiKey, { credential });
      expect({ name: protocol.name, ...verified }).toMatchObject({ ok: true, message: { isValid: true } });
      const missing = await protocol.call(getIssuedApiKey, { keyId: "01890000-0000-7000-8000-000000000000" });
      expect({ name: protocol.name, ...missing }).toMatchObject({ ok: false, code: "NOT_FOUND" });
      expect(JSON.stringify(missing)).toContain("API_KEY_NOT_FOUND");
    }
  });

  test("passes an import of several megabytes, and nothing else of that size", async () => {
    const rest = restClient(proxy);
    const item = (place: number) => ({
      raw_key: `${kind}-${place}-`.padEnd(2000, "x"),
      name: "moved over",
      actor_id: "team_1",
      metadata: { note: "y".repeat(1500) },
    });
    const requests = Array.from({ length: 1000 }, (_, place) => item(place));
    const imported = await rest("POST", `${paths.imported}:batchCreate`, { requests });
    expect({ status: imported.status, count: imported.body?.success_count }).toEqual({ status: 200, count: 1000 });
    const refused = await rest("POST", `${paths.keys}:verify`, { credential: "x".repeat(2 << 20) });
    expect(refused.status).toBe(413);
  });

  test("fails no call while the servers are restarted one after another", async ({ signal }) => {
    const wanted = protocols.filter(({ name }) => ["gRPC", "Connect in JSON", "REST"].includes(name));
    const [first] = wanted;
    if (first === undefined) throw new Error("no protocol");
    const credential = await makeKey(first);
    const loads = [...wanted.map((protocol) => loadOf(protocol, credential)), introspections(proxy, credential)];
    // Not awaited: after a timeout of the test, a call may hang until the proxy has exited.
    onTestFinished(() => {
      for (const { stop } of loads) void stop();
    });
    for (let place = 0; place < servers.length; place++) {
      await Promise.all(loads.map(({ more }) => more(100)));
      await restart(place);
      await untilUsed(proxy, place, signal);
    }
    await Promise.all(loads.map(({ more }) => more(100)));
    await Promise.all(loads.map(({ stop }) => stop()));
    console.info(`${kind}: ${loads.map(({ count }) => count()).join(", ")} calls`);
    expect(countOf(loads.flatMap(({ failures }) => failures))).toEqual({});
  });

  test("writes no secret to its log", async () => {
    const rest = restClient(proxy, { authorization: "Bearer kh_v1_authorization" });
    await rest("GET", `${paths.issued}/kh_v1_mistaken?filter=kh_v1_query`);
    await proxy.stop();
    const log = proxy.log();
    expect(log).toContain('"status"');
    expect(log.match(/\/health\/ready|"route":"read"/)).not.toBeNull();
    expect(log).not.toMatch(/kh_v1/);
  });
});
