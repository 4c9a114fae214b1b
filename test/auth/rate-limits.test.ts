import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { json as readJson } from "node:stream/consumers";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issueSecret } from "../../src/credential/issued-secret.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { table, UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { lastRequest, linesOf } from "../support/log-lines.ts";
import type { Protocol, Reply } from "../support/protocols/call.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { scrape, total } from "../support/scrape.ts";
import { ROOT_SECRET } from "../support/server.ts";

/** The minimum setting. */
const RATE = 1;
const BURST = 10 * RATE;

const ENVIRONMENT = {
  KEYHOLD_AUTH: "admin-token",
  KEYHOLD_PUBLIC_RATE: String(RATE),
  KEYHOLD_FAILURE_RATE: String(RATE),
  KEYHOLD_METRICS_PORT: "0",
};

const suite = useGuardedService(() => ENVIRONMENT);

/** Refills all buckets. */
const renew = () => suite.server.restart(ENVIRONMENT);

const LIMITED = {
  ok: false,
  code: "RESOURCE_EXHAUSTED",
  details: {
    "google.rpc.ErrorInfo": { reason: "RATE_LIMITED", domain: "keyhold" },
    "google.rpc.RetryInfo": { retry_delay: "1s" },
    "google.rpc.QuotaFailure": { violations: [{ subject: "client_address" }] },
  },
};

async function withProtocols(work: (protocol: Protocol) => Promise<void>): Promise<void> {
  for (const protocol of openProtocols(suite.server)) {
    await work(protocol);
    protocol.close();
  }
}

/** Exceeds the rate of a bucket. */
async function exhaust(call: () => Promise<Reply>): Promise<void> {
  for (let count = 0; count < BURST + 5; count++) await call();
}

const lastLine = () => lastRequest(suite.server.log());

/** Sends a request from this address over a new connection. */
async function from(
  localAddress: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = "",
) {
  const type = body === "" ? {} : { "content-type": "application/json" };
  const sent = request(suite.server.url + path, {
    method,
    localAddress,
    agent: false,
    headers: { ...headers, ...type },
  });
  sent.end(body);
  const [response]: IncomingMessage[] = await once(sent, "response");
  if (response === undefined) throw new Error("no response");
  return { status: response.statusCode, headers: response.headers, body: (await readJson(response)) as Json };
}

describe("public calls", () => {
  const { selfRevokeApiKey } = SelfServiceService.method;
  const { getJwks } = DerivedKeysService.method;

  test("are limited by the address of the peer, over every protocol", async () => {
    await renew();
    const [first] = openProtocols(suite.server);
    await exhaust(() => (first as Protocol).call(getJwks, {}));
    first?.close();
    await withProtocols(async ({ name, call }) => {
      const replies = [];
      // One token is refilled each second.
      for (let count = 0; count < 3; count++) replies.push(await call(selfRevokeApiKey, { credential: "x" }));
      const limited = replies.filter((reply) => !reply.ok && reply.code === "RESOURCE_EXHAUSTED");
      expect([name, limited[0]]).toMatchObject([name, LIMITED]);
      expect([name, limited[0]?.headers.get("retry-after")]).toEqual([name, "1"]);
      await expect.poll(lastLine).toMatchObject({ code: expect.stringMatching(/./) });
    });
    expect(
      linesOf(suite.server.log()).some(
        ({ reason, code }) => reason === "RATE_LIMITED" && code === "RESOURCE_EXHAUSTED",
      ),
    ).toBe(true);
  });

  test("of another address are not limited, and REST returns Retry-After", async () => {
    await renew();
    const statuses = [];
    for (let count = 0; count <= BURST; count++) statuses.push(await from("127.0.0.1", "GET", paths.jwks));
    const refused = statuses.find(({ status }) => status === 429);
    expect(refused).toMatchObject({ headers: { "retry-after": "1" } });
    expect(refused?.body.error).toMatchObject({
      code: 429,
      status: "RESOURCE_EXHAUSTED",
      details: [{ reason: "RATE_LIMITED" }, { retry_delay: "1s" }, { violations: [{ subject: "client_address" }] }],
    });
    expect((await from("127.0.0.2", "GET", paths.jwks)).status).toBe(200);
  });

  test("take one token each, although they are admitted again with their complete body", async () => {
    await renew();
    const statuses = [];
    for (let count = 0; count < BURST; count++) {
      statuses.push((await from("127.0.0.3", "POST", paths.selfRevoke, {}, '{"credential": "x"}')).status);
    }
    expect(statuses).toEqual(Array(BURST).fill(401));
  });

  test("of reflection are limited, and health probes are not", async () => {
    await renew();
    const transport = createGrpcTransport({ baseUrl: suite.server.url });
    const reflection = createClient(ServerReflection, transport);
    const ask = async () => {
      const answers = reflection.serverReflectionInfo(
        (async function* () {
          yield { messageRequest: { case: "listServices" as const, value: "" } };
        })(),
      );
      return (await Array.fromAsync(answers)).length;
    };
    const outcomes = [];
    for (let count = 0; count <= BURST; count++) outcomes.push(await ask().catch(({ rawMessage }) => rawMessage));
    expect(outcomes[0]).toBe(1);
    expect(outcomes.at(-1)).toContain("retry after 1 s");
    const health = createClient(Health, transport);
    for (let count = 0; count < 3 * BURST; count++) expect(await health.check({})).toMatchObject({ status: 1 });
    for (let count = 0; count < 3 * BURST; count++) expect((await suite.rest("GET", "/health/ready")).status).toBe(200);
  });
});

describe("calls with a rejected credential", () => {
  const { verifyApiKey } = ApiKeysService.method;

  test("are limited over every protocol, and valid ones from the same address are not", async () => {
    const { secret } = await issue(suite.rest);
    await renew();
    const [first] = openProtocols(suite.server);
    const refused = bearer("kh_v1_nonsense");
    await exhaust(() => (first as Protocol).call(verifyApiKey, { credential: secret }, refused));
    first?.close();
    await withProtocols(async ({ name, call }) => {
      const replies = [];
      for (let count = 0; count < 3; count++) replies.push(await call(verifyApiKey, { credential: secret }, refused));
      expect([name, replies.find((reply) => !reply.ok && reply.code !== "UNAUTHENTICATED")]).toMatchObject([
        name,
        LIMITED,
      ]);
      const good = await call(verifyApiKey, { credential: secret }, bearer(suite.token("keyhold:verify")));
      expect([name, good]).toMatchObject([name, { ok: true, message: { isValid: true } }]);
    });
    expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: true });
  });

  test("are limited by caller if known, for any address", async () => {
    await renew();
    const [one, other] = [bearer(suite.token("keyhold:verify")), bearer(suite.token("keyhold:derive"))];
    const statuses = [];
    for (let count = 0; count <= BURST + 2; count++) {
      statuses.push((await from(`127.0.0.${10 + (count % 2)}`, "GET", paths.issued, one)).status);
    }
    expect(statuses.slice(0, BURST)).toEqual(Array(BURST).fill(403));
    expect(statuses).toContain(429);
    expect((await from("127.0.0.10", "GET", paths.issued, other)).status).toBe(403);
    expect((await from("127.0.0.10", "GET", paths.issued)).status).toBe(401);
  });

  const REASONS = table([
    ["MISSING", async () => ({})],
    ["MALFORMED", async () => ({ authorization: "Basic YTpi" })],
    ["UNKNOWN_KIND", async () => bearer("something")],
    ["NOT_FOUND", async () => bearer(secretOfNoKey())],
    ["KEY_REVOKED", async () => bearer((await revokedToken()).secret)],
    ["DISABLED", async () => bearer(await disabledToken())],
    ["NOT_PERMITTED", async () => bearer(suite.token("keyhold:verify"))],
  ] as const);

  test.each(REASONS)("are counted and logged: %s", async (reason, headersOf) => {
    await renew();
    const headers: Record<string, string> = await headersOf();
    const before = await counted(reason);
    const { status } = await from("127.0.0.20", "GET", paths.issued, headers);
    expect(status).toBe(reason === "NOT_PERMITTED" ? 403 : 401);
    expect((await counted(reason)) - before).toBe(1);
    await expect
      .poll(lastLine)
      .toMatchObject({ reason, peer: "127.0.0.20", rpc: expect.stringContaining("ListIssuedApiKeys") });
  });

  test("are logged with the identified key, which the response does not reveal", async () => {
    await renew();
    const { keyId, secret } = await revokedToken();
    const answer = await suite.as(secret)("GET", paths.issued);
    expect(answer.status).toBe(401);
    expect(answer.text).not.toContain(keyId);
    await expect
      .poll(lastLine)
      .toMatchObject({ reason: "KEY_REVOKED", refused_key_id: keyId, code: "UNAUTHENTICATED" });
    expect(lastLine()).not.toHaveProperty("key_id");
    expect(lastLine()).not.toHaveProperty("caller");
    await suite.as(suite.token("keyhold:verify"))("GET", paths.issued);
    await expect
      .poll(lastLine)
      .toMatchObject({ reason: "NOT_PERMITTED", caller: expect.stringMatching(/^admin-token:/) });
  });
});

test("off disables the limit", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_PUBLIC_RATE: "off", KEYHOLD_FAILURE_RATE: "off" });
  for (let count = 0; count < 5 * BURST; count++) {
    expect((await suite.rest("GET", paths.jwks)).status).toBe(200);
    expect((await suite.as(null)("GET", paths.issued)).status).toBe(401);
  }
});

/** A well-formed secret under the right root secret of a key that does not exist. */
function secretOfNoKey(): string {
  const root = { current: Buffer.from(ROOT_SECRET), retired: [] };
  const tagKeys = deriveKeyRing(root, "secret-tag");
  return issueSecret({ prefix: parseSecretPrefix("kh"), keyId: UNKNOWN_KEY_ID, random: systemRandom, tagKeys });
}

async function revokedToken(): Promise<{ keyId: string; secret: string }> {
  const { keyId, secret } = await issue(suite.rest, { scopes: ["keyhold:keys.read"] });
  await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
  return { keyId, secret };
}

async function disabledToken(): Promise<string> {
  const { keyId, secret } = await issue(suite.rest, { scopes: ["keyhold:keys.read"] });
  await suite.rest("POST", `${paths.keys}/${keyId}:disable`, {});
  return secret;
}

/** Log of the latest server. */
function newestMetricsUrl(): string {
  return linesOf(suite.server.log())
    .flatMap(({ metrics }) => metrics ?? [])
    .at(-1);
}

async function counted(reason: string): Promise<number> {
  return total(await scrape(newestMetricsUrl()), "keyhold_refused_credentials_total", { reason });
}
