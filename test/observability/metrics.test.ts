import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openMetricsPort } from "../../src/observability/metrics/port.ts";
import { derive } from "../support/conformance.ts";
import { occupyPort } from "../support/occupy-port.ts";
import { issue, paths, restClient, verify } from "../support/rest.ts";
import { metricsUrl, scrape, total } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

const VERIFY = "keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

let server: TestServer;
let url: string;

beforeAll(async () => {
  server = await startTestServer({ KEYHOLD_METRICS_PORT: "0", KEYHOLD_ALLOWED_HOSTS: "keyhold-1" });
  url = metricsUrl(server.log());
});

afterAll(() => server.close());

/** `fetch` does not allow a Host header. */
async function http1Status(url: string, host: string): Promise<number | undefined> {
  const [response]: IncomingMessage[] = await once(request(url, { headers: { host } }).end(), "response");
  response?.resume();
  return response?.statusCode;
}

const post = (path: string, headers: Record<string, string>, body: string) =>
  fetch(`${server.url}${path}`, { method: "POST", headers, body });

test("counts requests by RPC, protocol and code, on the fast path and off it", async () => {
  const rest = restClient(server);
  const { secret } = await issue(rest);
  const body = JSON.stringify({ credential: secret });
  await verify(rest, secret);
  await verify(rest, secret);
  const json = { "content-type": "application/json" };
  await post(`/${VERIFY}`, json, body);
  // Served by Fastify: the fast path declines a compressed body and an unknown content type.
  await post(`/${VERIFY}`, { ...json, "content-encoding": "identity" }, body);
  await post(`${paths.keys}:verify`, { "content-type": "text/plain" }, body);
  await post(`${paths.keys}:verify`, json, "{");
  await post("/nowhere", json, body);
  const samples = await scrape(url);
  const count = (protocol: string, code: string, rpc = VERIFY) =>
    total(samples, "keyhold_requests_total", { rpc, protocol, code });
  expect(count("rest", "OK")).toBe(2);
  expect(count("connect", "OK")).toBe(2);
  expect(count("rest", "INVALID_ARGUMENT")).toBe(2);
  expect(count("rest", "NOT_FOUND", "other")).toBe(1);
  const of = { rpc: VERIFY, protocol: "rest" };
  expect(total(samples, "keyhold_request_duration_seconds_count", of)).toBe(4);
  expect(total(samples, "keyhold_request_duration_seconds_bucket", { ...of, le: "+Inf" })).toBe(4);
  expect(total(samples, "keyhold_request_duration_seconds_sum", of)).toBeGreaterThan(0);
  expect(total(samples, "keyhold_requests_in_flight")).toBe(0);
});

test("shows admin tokens in use that expire soon", async () => {
  const own = await startTestServer();
  onTestFinished(() => own.close());
  const { secret } = await issue(restClient(own), { scopes: ["keyhold:verify"], ttl: "13d" });
  await own.restart({ KEYHOLD_AUTH: "admin-token" });
  expect(await verify(restClient(own, { authorization: `Bearer ${secret}` }), "x")).toMatchObject({ is_valid: false });
  await own.restart({ KEYHOLD_METRICS_PORT: "0" });
  const expiring = async (state: string) =>
    total(await scrape(metricsUrl(own.log())), "keyhold_admin_tokens_expiring", { state });
  await expect.poll(() => expiring("expiring")).toBe(1);
  expect(await expiring("expired")).toBe(0);
});

test("rejects unknown Host names (DNS rebinding)", async () => {
  const fetchAs = (host: string) => http1Status(url, host);
  for (const host of ["localhost:4421", "127.0.0.1", "10.0.0.1:4421", "[fd00::1]", "keyhold-1:4421"])
    expect([host, await fetchAs(host)]).toEqual([host, 200]);
  for (const host of ["attacker.example", "attacker.example:4421", "keyhold-1.attacker.example", "localhost.example"])
    expect([host, await fetchAs(host)]).toEqual([host, 403]);
});

test("counts verdicts by type and result, except those on callers", async () => {
  const before = await scrape(url);
  const rest = restClient(server);
  const { secret, keyId } = await issue(rest);
  await verify(rest, secret);
  await rest("POST", `${paths.keys}/${keyId}:revoke`, {});
  await verify(rest, secret);
  await verify(rest, "kh_v1_nothing");
  const present = (credential: string, more: object) => rest("POST", `${paths.keys}:verify`, { credential, ...more });
  const disabled = await issue(rest, { scopes: ["read"] });
  const { token } = await derive(rest, disabled.secret);
  await present(disabled.secret, { required_scopes: ["write"] });
  await present(token, { audience: "books" });
  await rest("POST", `${paths.keys}/${disabled.keyId}:disable`, {});
  await verify(rest, disabled.secret);
  const remote = await issue(rest, { ip_restriction: { allowed_cidrs: ["192.0.2.0/24"] } });
  await present(remote.secret, { client_ip: "198.51.100.1" });
  const samples = await scrape(url);
  const more = (labels: Record<string, string>) =>
    total(samples, "keyhold_verdicts_total", labels) - (total(before, "keyhold_verdicts_total", labels) || 0);
  expect(more({ credential_type: "ISSUED_API_KEY", result: "VALID" })).toBe(2);
  expect(more({ credential_type: "ISSUED_API_KEY", result: "REVOKED" })).toBe(1);
  expect(more({ credential_type: "ISSUED_API_KEY", result: "INVALID_FORMAT" })).toBe(1);
  for (const result of ["DISABLED", "IP_NOT_ALLOWED", "INSUFFICIENT_SCOPE"])
    expect([result, more({ credential_type: "ISSUED_API_KEY", result })]).toEqual([result, 1]);
  expect(more({ credential_type: "JWT", result: "AUDIENCE_MISMATCH" })).toBe(1);
});

test("reports the state of the server", async () => {
  const samples = await scrape(url);
  for (const name of ["ready", "lease_fresh", "signing_key_active", "database_reachable", "build_info"])
    expect([name, total(samples, `keyhold_${name}`)]).toEqual([name, 1]);
  expect(total(samples, "keyhold_lease_age_seconds")).toBeLessThan(total(samples, "keyhold_lease_ttl_seconds"));
  expect(total(samples, "keyhold_database_connections_max", { pool: "changes" })).toBe(10);
  expect(total(samples, "keyhold_cache_hits_total")).toBeGreaterThan(0);
  expect(total(samples, "keyhold_cache_invalidations_total")).toBeGreaterThan(0);
  expect(total(samples, "nodejs_eventloop_lag_p99_seconds")).toBeGreaterThanOrEqual(0);
});

test("no label contains a key, actor, caller or request data", async () => {
  await fetch(`${server.url}/${"a".repeat(30)}`);
  const names = (await scrape(url)).flatMap(({ labels }) => Object.values(labels)).join("\n");
  expect(names).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}|aaaa|anonymous/);
});

test("serves GET and HEAD of /metrics only", async () => {
  expect((await fetch(new URL("/", url))).status).toBe(404);
  expect((await fetch(url, { method: "POST" })).status).toBe(405);
  expect((await fetch(url)).headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
});

test("answers 503 until the server is up, and 500 on a failed scrape", async () => {
  const faults: unknown[] = [];
  const port = await openMetricsPort({ host: "127.0.0.1", port: 0 }, [], (error) => faults.push(error));
  expect((await fetch(port.url)).status).toBe(503);
  const failure = new Error("no");
  port.serve(() => Promise.reject(failure));
  expect((await fetch(port.url)).status).toBe(500);
  expect(faults).toEqual([failure]);
  await port.close();
});

test("rejects with Node's error if the port is in use", async () => {
  const opening = openMetricsPort({ host: "127.0.0.1", port: await occupyPort() }, [], () => {});
  await expect(opening).rejects.toMatchObject({ code: "EADDRINUSE" });
});
