import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { status } from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ApiKeysService, type StreamVerifyResponse, TokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { fields, forwardAuth } from "../support/forward-auth.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { linesOf } from "../support/log-lines.ts";
import { codeName, decodeDetails, type Protocol, type Reply } from "../support/protocols/call.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths, restClient, verify } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { openStream } from "../support/verification-stream.ts";

/** The minimum setting. */
const RATE = 1;
const BURST = 10 * RATE;

const ENVIRONMENT = {
  KEYHOLD_AUTH: "admin-token",
  KEYHOLD_GATEWAYS: "forward-auth",
  KEYHOLD_TRUSTED_PROXIES: "127.0.0.1",
  KEYHOLD_VERIFICATION_FAILURE_RATE: String(RATE),
  KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: "100",
  KEYHOLD_CHANGE_RATE: "off",
  KEYHOLD_IMPORT_RATE: "off",
  KEYHOLD_METRICS_PORT: "0",
};

const suite = useGuardedService(() => ENVIRONMENT);
const { deriveToken, verifyApiKey } = ApiKeysService.method;

/** Fills all buckets in memory. */
const renew = (more: Record<string, string> = {}) => suite.server.restart({ ...ENVIRONMENT, ...more });

let names = 0;
/** A raw key that nobody has imported. */
const unknown = () => `unknown-raw-key-${++names}`;

/** Returns the headers of a caller with this scope, which is another one than that of `suite.rest`. */
const caller = (scope: Parameters<typeof suite.token>[0]) => bearer(suite.token(scope));

/** Verifies a credential that a client at this address has presented. */
const verifyFrom = (client_ip: string, credential = unknown()) =>
  suite.as(suite.token("keyhold:verify"))("POST", `${paths.keys}:verify`, { credential, client_ip });

/** Returns the statuses of verifications that fail. */
async function fail(count: number, addressOf: (index: number) => string): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < count; index++) statuses.push((await verifyFrom(addressOf(index))).status);
  return statuses;
}

async function importKey(raw_key: string): Promise<void> {
  const body = { raw_key, name: "imported", actor_id: "actor_1" };
  expect((await suite.rest("POST", paths.imported, body)).status).toBe(200);
}

async function metrics(): Promise<Awaited<ReturnType<typeof scrape>>> {
  const urls = linesOf(suite.server.log()).flatMap(({ metrics }) => metrics ?? []);
  return scrape(urls.at(-1));
}

function limited(limit: string, subject: "client_address" | "caller") {
  return {
    ok: false,
    code: "RESOURCE_EXHAUSTED",
    details: {
      "google.rpc.ErrorInfo": { reason: "RATE_LIMITED", domain: "keyhold", metadata: { limit } },
      "google.rpc.RetryInfo": { retry_delay: expect.stringMatching(/^\d+s$/) },
      "google.rpc.QuotaFailure": { violations: [{ subject, description: expect.stringContaining("too many") }] },
    },
  };
}

async function withProtocols(work: (protocol: Protocol) => Promise<void>): Promise<void> {
  for (const protocol of openProtocols(suite.server)) {
    await work(protocol);
    protocol.close();
  }
}

type Verification = MessageInitShape<typeof ApiKeysService.method.streamVerify.input>;

/** Verifies credentials over one stream, which must not fail. */
async function streamed(protocol: "gRPC" | "Connect", requests: readonly Verification[]) {
  const headers = caller("keyhold:verify");
  if (protocol === "Connect") {
    const transport = createConnectTransport({ baseUrl: suite.server.url, httpVersion: "2" });
    const { streamVerify } = createClient(ApiKeysService, transport);
    const sent = (async function* () {
      yield* requests;
    })();
    return Array.fromAsync(streamVerify(sent, { headers }));
  }
  const stream = openStream(suite.server.address, headers);
  for (const request of requests) stream.send(request);
  expect(await stream.end()).toMatchObject({ code: status.OK });
  return stream.answers;
}

/** Returns the verdict of an answer, or its error like that of a call. */
function resultOf({ result: { case: name, value } }: StreamVerifyResponse) {
  if (name === "response") return value;
  const details = value?.details.map(({ typeUrl, value }) => ({ type: typeUrl.replace(/.*\//, ""), value })) ?? [];
  return { ok: false, code: codeName(value?.code ?? Code.Unknown), details: decodeDetails(details) };
}

const ADDRESS = "203.0.113.7";
const OTHER = "203.0.113.8";

/** Makes more calls than a bucket has refilled tokens for, also on a slow machine. */
const atOnce = <T>(call: () => Promise<T>): Promise<T[]> => Promise.all(Array.from({ length: 2 * BURST }, call));

/** Asks until the limit of the address denies it: a token may be refilled before. */
async function overLimit<T extends { readonly status: number }>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    await atOnce(() => verifyFrom(ADDRESS));
    const answer = await ask();
    if (answer.status === 429) return answer;
  }
}

describe("failed verifications of the clients of an address", () => {
  beforeEach(() => renew());

  test("are limited over every protocol, with the time to wait, and those of another address are not", async () => {
    expect(await fail(BURST, () => ADDRESS)).toEqual(Array(BURST).fill(200));
    let others = 0;
    await withProtocols(async ({ name, call }) => {
      const ask = (clientIp: string) =>
        call(verifyApiKey, { credential: unknown(), clientIp }, caller("keyhold:verify"));
      const denied = (await atOnce(() => ask(ADDRESS))).find(({ ok }) => !ok);
      expect([name, denied]).toMatchObject([name, limited("failed_verifications", "client_address")]);
      // Reads in flight may fail too: until there are tokens for them, or the bucket is half full.
      expect([name, denied?.headers.get("retry-after")]).toEqual([name, expect.stringMatching(/^[1-5]$/)]);
      expect([name, await ask(`203.0.114.${++others}`)]).toMatchObject([
        name,
        { ok: true, message: { isValid: false } },
      ]);
    });
  });

  test("over the limit cost no read of the database, and no statement of limits", async () => {
    await fail(BURST + 1, () => ADDRESS);
    const counts = async () => {
      const samples = await metrics();
      return ["keyhold_cache_misses_total", "keyhold_limit_statements_total"].map((name) => total(samples, name));
    };
    const before = await counts();
    const replies = await Promise.all(Array.from({ length: 200 }, () => verifyFrom(ADDRESS)));
    const [misses = Number.NaN, statements] = (await counts()).map((count, index) => count - (before[index] ?? 0));
    // One token is refilled each second.
    const admitted = replies.filter(({ status }) => status === 200).length;
    expect(replies.every(({ status }) => status === 200 || status === 429)).toBe(true);
    expect(admitted).toBeLessThan(20);
    expect(misses).toBeLessThanOrEqual(admitted);
    expect(statements).toBe(0);
  });

  test("lock out no key that Keyhold has issued, none that it has verified before, and no token", async () => {
    const { secret } = await issue(suite.rest);
    const { secret: parent } = await issue(suite.rest);
    const derive = { credential: parent, algorithm: "TOKEN_ALGORITHM_JWT" };
    const { token } = (await suite.rest("POST", `${paths.keys}:derive`, derive)).body.token;
    const warm = unknown();
    await importKey(warm);
    const colds = Array.from({ length: 10 }, unknown);
    for (const cold of colds) await importKey(cold);
    expect(await verify(suite.rest, warm)).toMatchObject({ is_valid: true });
    const { body } = await overLimit(() => verifyFrom(ADDRESS, colds.pop()));
    expect(body.error.details[0].metadata).toEqual({ limit: "failed_verifications" });
    for (const credential of [secret, token, warm])
      expect((await verifyFrom(ADDRESS, credential)).body).toMatchObject({ is_valid: true });
    const cold = colds.pop();
    expect((await verifyFrom(OTHER, cold)).body).toMatchObject({ is_valid: true });
    expect((await verifyFrom(ADDRESS, cold)).body).toMatchObject({ is_valid: true });
  });

  test("do not count a credential of a known key", async () => {
    const { secret, keyId } = await issue(suite.rest);
    await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
    for (let count = 0; count < 2 * BURST; count++)
      expect((await verifyFrom(ADDRESS, secret)).body).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
  });

  test("are denied by themselves in a batch", async () => {
    const { secret } = await issue(suite.rest);
    const requests = [...Array(BURST + 5).keys()].map(() => ({ credential: unknown(), client_ip: ADDRESS }));
    const { body } = await suite.rest("POST", `${paths.keys}:batchVerify`, {
      requests: [...requests, { credential: secret, client_ip: ADDRESS }],
    });
    const codes = body.results.map(({ error_code }: Json) => error_code ?? "VALID");
    expect(codes.slice(0, BURST)).toEqual(Array(BURST).fill("VERIFICATION_ERROR_NOT_FOUND"));
    expect(codes.slice(-2)).toEqual(["VERIFICATION_ERROR_RATE_LIMITED", "VALID"]);
  });

  test.each(["gRPC", "Connect"] as const)("are denied by themselves in a stream over %s", async (protocol) => {
    const { secret } = await issue(suite.rest);
    const credentials = [...Array.from({ length: 2 * BURST }, unknown), secret];
    const requests = credentials.map((credential, id) => ({ id, request: { credential, clientIp: ADDRESS } }));
    const answers = (await streamed(protocol, requests)).sort((one, other) => one.id - other.id);
    const [valid, ...results] = answers.reverse().map(resultOf);
    expect(valid).toMatchObject({ isValid: true });
    const denied = results.filter((result) => "code" in result);
    const failed = results.length - denied.length;
    expect(results).toHaveLength(2 * BURST);
    expect(failed).toBeGreaterThanOrEqual(BURST);
    expect(denied[0]).toMatchObject(limited("failed_verifications", "client_address"));
    const line = () => linesOf(suite.server.log()).findLast(({ msg, verdicts }) => msg === "request" && verdicts);
    const counts = [`NOT_FOUND=${failed}`, `RESOURCE_EXHAUSTED=${denied.length}`, "VALID=1"];
    await expect.poll(() => line()?.verdicts.split(",").sort()).toEqual(counts);
  });

  test("get 429 from a gateway and from introspection", async () => {
    const token = `X-Keyhold-Authorization: Bearer ${suite.token("keyhold:verify")}`;
    const headers = fields(token, `X-Api-Key: ${unknown()}`, `X-Forwarded-For: ${ADDRESS}`);
    const decision = await overLimit(() => forwardAuth(suite.server, { headers }));
    expect(decision.headers["retry-after"]).toBe("1");
    expect(decision.body.error.details).toMatchObject([
      { reason: "RATE_LIMITED" },
      { retry_delay: "1s" },
      { violations: [{ subject: "client_address" }] },
    ]);
    const form = new URLSearchParams({ token: unknown(), client_ip: ADDRESS });
    const introspected = await overLimit(() => suite.rest("POST", "/v2alpha1/introspect", form));
    expect(introspected.headers.get("retry-after")).toBe("1");
  });

  test("are counted by limit", async () => {
    const replies = await atOnce(() => verifyFrom(ADDRESS));
    const samples = await metrics();
    const count = (expected: number) => replies.filter(({ status }) => status === expected).length;
    expect(count(429)).toBeGreaterThan(0);
    expect(total(samples, "keyhold_rate_limit_admitted_total", { limit: "failed_verifications" })).toBe(count(200));
    expect(total(samples, "keyhold_rate_limited_total", { limit: "failed_verifications" })).toBe(count(429));
  });
});

describe("failed verifications of a caller", () => {
  const addressOf = (index: number) => `198.51.${Math.floor(index / 250)}.${1 + (index % 250)}`;

  test("are limited whatever the addresses of its clients, and those of another caller are not", async () => {
    await renew({ KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: String(RATE) });
    const statuses = await fail(BURST + 1, addressOf);
    expect(statuses.slice(0, BURST)).toEqual(Array(BURST).fill(200));
    const { status, body } = await verifyFrom(addressOf(BURST + 2));
    expect([status, body.error?.details[0].metadata]).toEqual([429, { limit: "caller_failed_verifications" }]);
    expect(await verify(suite.rest, unknown())).toMatchObject({ is_valid: false });
  });

  test("that are over the limit of an address take nothing of the caller's", async () => {
    await renew({ KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: String(2 * RATE) });
    await fail(3 * BURST, () => ADDRESS);
    expect(await fail(BURST / 2, addressOf)).toEqual(Array(BURST / 2).fill(200));
  });

  test("deny derivations over every protocol, each counted once, but none from a key that Keyhold has issued", async () => {
    await renew({ KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: String(RATE) });
    const { secret } = await issue(suite.rest);
    const replies: Reply[] = [];
    await withProtocols(async ({ name, call }) => {
      const derive = (credential: string) =>
        call(deriveToken, { credential, algorithm: TokenAlgorithm.JWT }, caller("keyhold:derive"));
      const failed = await atOnce(() => derive(unknown()));
      replies.push(...failed);
      const denied = failed.find((reply) => !reply.ok && reply.code === "RESOURCE_EXHAUSTED");
      expect([name, denied]).toMatchObject([name, limited("caller_failed_verifications", "caller")]);
      expect([name, await derive(secret)]).toMatchObject([name, { ok: true }]);
    });
    const reasons = replies.map((reply) => !reply.ok && reply.details["google.rpc.ErrorInfo"].reason);
    const counts = ["CREDENTIAL_INVALID", "RATE_LIMITED"].map(
      (one) => reasons.filter((reason) => reason === one).length,
    );
    expect(counts[0]).toBeGreaterThanOrEqual(BURST);
    expect(counts[1]).toBe(replies.length - (counts[0] ?? 0));
    const samples = await metrics();
    const names = ["keyhold_rate_limit_admitted_total", "keyhold_rate_limited_total"];
    expect(names.map((name) => total(samples, name, { limit: "caller_failed_verifications" }))).toEqual(counts);
  });

  test("off disables both limits", async () => {
    await renew({ KEYHOLD_VERIFICATION_FAILURE_RATE: "off", KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: "off" });
    expect(await fail(5 * BURST, () => ADDRESS)).toEqual(Array(5 * BURST).fill(200));
  });
});

describe("on two servers", () => {
  const CHANGES = {
    ...ENVIRONMENT,
    KEYHOLD_CHANGE_RATE: String(RATE),
    KEYHOLD_IMPORT_RATE: String(RATE),
  };
  let other: TestServer;
  let keyId: string;

  beforeAll(async () => {
    await renew();
    keyId = (await issue(suite.rest)).keyId;
    await renew(CHANGES);
    other = await startTestServer({ ...CHANGES, KEYHOLD_DATABASE_URL: suite.server.databaseUrl });
  });
  afterAll(() => other.close());

  const servers = () => [suite.server, other];
  const update = (server: TestServer, scope: Parameters<typeof suite.token>[0]) =>
    restClient(server, caller(scope))("PATCH", `${paths.issued}/${keyId}?update_mask=name`, { name: "another" });

  test("failed verifications of an address have one limit", async () => {
    let network = 0;
    const failOnBoth = async () => {
      const client_ip = `198.18.0.${++network}`;
      let admitted = 0;
      for (let count = 0; count < BURST; count++)
        for (const server of servers()) {
          const rest = restClient(server, caller("keyhold:verify"));
          const { status } = await rest("POST", `${paths.keys}:verify`, { credential: unknown(), client_ip });
          if (status === 200) admitted++;
        }
      return admitted;
    };
    // Each server learns of the other when it renews its lease. A token is refilled each second.
    await expect.poll(failOnBoth, { timeout: 60_000 }).toBeLessThanOrEqual(BURST + 1);
    expect(await failOnBoth()).toBeGreaterThanOrEqual(BURST);
  });

  test("changes of a caller have one limit, which neither a revocation, a read nor another caller meets", async () => {
    const begin = performance.now();
    const updates = servers().map((server) => atOnce(() => update(server, "keyhold:keys.update")));
    const answers = (await Promise.all(updates)).flat();
    const seconds = (performance.now() - begin) / 1000;
    const admitted = answers.filter(({ status }) => status === 200).length;
    // On a busy machine tokens expire before they are used.
    expect(admitted).toBeGreaterThan(0);
    expect(admitted).toBeLessThanOrEqual(BURST + RATE * (seconds + 1));
    const denied = answers.find(({ status }) => status === 429);
    expect(denied?.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(denied?.body.error).toMatchObject({
      status: "RESOURCE_EXHAUSTED",
      details: [
        { reason: "RATE_LIMITED", metadata: { limit: "changes" } },
        { retry_delay: expect.any(String) },
        { violations: [{ subject: "caller" }] },
      ],
    });
    expect((await update(other, "keyhold:keys.write")).status).toBe(200);
    expect((await suite.rest("GET", `${paths.issued}/${keyId}`)).status).toBe(200);
  });

  test("changes are limited over every protocol, and revocations are not", async () => {
    const scope = "keyhold:keys.write";
    const { updateIssuedApiKey } = IssuedApiKeysService.method;
    const { revokeApiKey, disableApiKey } = ApiKeysService.method;
    const issuedApiKey = { keyId, name: "another" };
    await withProtocols(async ({ name, call }) => {
      const replies = await atOnce(() =>
        call(updateIssuedApiKey, { issuedApiKey, updateMask: { paths: ["name"] } }, caller(scope)),
      );
      expect([name, replies.find(({ ok }) => !ok)]).toMatchObject([name, limited("changes", "caller")]);
      expect([name, await call(disableApiKey, { keyId }, caller(scope))]).toMatchObject([name, { ok: true }]);
    });
    const [first] = openProtocols(suite.server);
    expect(await first?.call(revokeApiKey, { keyId }, caller(scope))).toMatchObject({ ok: true });
    first?.close();
  });

  test("imports of a caller are counted by key, and a batch of the largest size is possible", async () => {
    const importMany = (server: TestServer, count: number, scope: Parameters<typeof suite.token>[0]) => {
      const requests = Array.from({ length: count }, () => ({ raw_key: unknown(), name: "n", actor_id: "a" }));
      return restClient(server, caller(scope))("POST", `${paths.imported}:batchCreate`, { requests });
    };
    expect((await importMany(suite.server, 1_000, "keyhold:keys.import")).status).toBe(200);
    const { status, body } = await importMany(other, 500, "keyhold:keys.import");
    expect([status, body.error?.details[0].metadata]).toEqual([429, { limit: "imports" }]);
    expect((await importMany(other, 500, "keyhold:keys.write")).status).toBe(200);
  });

  test("an exceeded limit is one event of the audit log in its period", async () => {
    const limit = { name: "requests", quota: 1, window: "24h" };
    const { secret, keyId: limitedId } = await issue(restClient(suite.server, caller("keyhold:admin")), {
      ...{ actor_id: "limited", rate_limits: [limit] },
    });
    const address = "192.0.2.77";
    const exceed = async (server: TestServer) => {
      const rest = restClient(server, caller("keyhold:verify"));
      const verifyOne = (credential: string) => () =>
        rest("POST", `${paths.keys}:verify`, { credential, client_ip: address });
      await atOnce(verifyOne(secret));
      await atOnce(() => verifyOne(unknown())());
    };
    await exceed(suite.server);
    const events = exceededOf(suite.server);
    await expect.poll(async () => (await events(`key_id="${limitedId}"`)).length).toBe(1);
    const [ofKey] = await events(`key_id="${limitedId}"`);
    expect(ofKey).toMatchObject({ actor_id: "limited", resource_id: "requests", key_id: limitedId });
    expect(ofKey.caller.method).toBe("local");
    expect(ofKey.changes).toContainEqual({ field: "window", after: "86400s" });
    const own = 'resource_id="failed_verifications" AND client_ip="127.0.0.1"';
    const ofAddress = async () =>
      (await events(own)).filter(({ changes }: Json) => changes.some(({ after }: Json) => after === address));
    await expect.poll(async () => (await ofAddress()).length).toBe(1);
    expect((await ofAddress())[0]).toMatchObject({
      caller: { name: expect.stringMatching(/^admin-token:/) },
      rpc: "keyhold.v2alpha1.ApiKeysService/VerifyApiKey",
      key_id: "",
      changes: [{ field: "owner", after: address }],
    });
    // The other server exceeds both too, and records nothing: the next event of another limit comes after them.
    await exceed(other);
    const marker = "192.0.2.78";
    const failed = () => ({ credential: unknown(), client_ip: marker });
    await atOnce(() => restClient(other, caller("keyhold:verify"))("POST", `${paths.keys}:verify`, failed()));
    await expect.poll(async () => JSON.stringify(await events(own))).toContain(marker);
    expect(await events(`key_id="${limitedId}"`)).toHaveLength(1);
    expect(await ofAddress()).toHaveLength(1);
  });
});

/** Returns the events of exceeded limits that match a filter. */
function exceededOf(server: TestServer) {
  return async (filter: string): Promise<Json[]> => {
    const query = new URLSearchParams({ filter: `action="limit.exceeded" AND ${filter}` });
    const rest = restClient(server, caller("keyhold:audit"));
    return (await rest("GET", `${paths.auditEvents}?${query}`)).body.audit_events;
  };
}
