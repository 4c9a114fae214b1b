import { createServer } from "node:http";
import express from "express";
import { rateLimit } from "express-rate-limit";
import { fastify } from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import { requireCredential as expressMiddleware } from "../../src/verifier/express.ts";
import { requireCredential as fastifyHook } from "../../src/verifier/fastify.ts";
import { createKeyVerifier } from "../../src/verifier/index.ts";
import { useService } from "../support/conformance.ts";
import { listenLocally } from "../support/listen.ts";
import { readRateLimitFields } from "../support/rate-limit-fields.ts";
import { issue, type Json } from "../support/rest.ts";

const suite = useService();

const PER_DAY = { name: "requests", quota: 2, window: "24h" };
const LIMITS = { rate_limits: [PER_DAY], quotas: [{ name: "monthly", limit: 9, period: "QUOTA_PERIOD_MONTH" }] };

/** Serves `/` at the cost 1, and `/exports` at the cost 2 by the limit "requests". */
const APPLICATIONS = {
  fastify: async () => {
    const app = fastify();
    const verifier = createKeyVerifier({ baseUrl: suite.server.url });
    app.get("/", { onRequest: fastifyHook(verifier) }, () => "ok");
    const charges = [{ name: "requests", cost: 2 }];
    app.get("/exports", { onRequest: fastifyHook(verifier, { charges }) }, () => "ok");
    onTestFinished(() => app.close());
    return app.listen({ port: 0, host: "127.0.0.1" });
  },
  express: async () => {
    const app = express();
    const verifier = createKeyVerifier({ baseUrl: suite.server.url });
    app.get("/", expressMiddleware(verifier), (_, response) => void response.send("ok"));
    const charges = [{ name: "requests", cost: 2 }];
    app.get("/exports", expressMiddleware(verifier, { charges }), (_, response) => void response.send("ok"));
    const server = createServer(app);
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${await listenLocally(server)}`;
  },
};

describe.each(["fastify", "express"] as const)("%s", (framework) => {
  test("says how much is left, and answers 429 when nothing is", async () => {
    const url = await APPLICATIONS[framework]();
    const { secret } = await issue(suite.rest, LIMITS);
    const get = (path = "/") => fetch(url + path, { headers: { "x-api-key": secret, connection: "close" } });
    const first = await get();
    expect(first.status).toBe(200);
    const { policies, states } = readRateLimitFields(first.headers);
    expect(policies).toEqual({ requests: { q: 2, w: 86_400 }, monthly: { q: 9 } });
    expect(states).toMatchObject({ requests: { r: 1 }, monthly: { r: 8 } });
    expect(first.headers.get("retry-after")).toBeNull();
    expect((await get("/exports")).status).toBe(429);
    expect((await get()).status).toBe(200);
    const denied = await get();
    expect(denied.status).toBe(429);
    const wait = Number(denied.headers.get("retry-after"));
    const body: Json = await denied.json();
    expect(body.error).toEqual({
      ...{ code: 429, status: "RESOURCE_EXHAUSTED", message: "too many requests" },
      details: [
        {
          ...{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "RATE_LIMITED", domain: "keyhold" },
          metadata: { error_code: "VERIFICATION_ERROR_RATE_LIMITED" },
        },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: `${wait}s` },
      ],
    });
    expect(readRateLimitFields(denied.headers).states).toMatchObject({ requests: { r: 0 }, monthly: { r: 7 } });
    expect(wait).toBeGreaterThan(40_000);
    expect(wait).toBeLessThanOrEqual(43_200);
    expect(denied.headers.get("www-authenticate")).toBeNull();
  });

  test("adds nothing for a key without limits", async () => {
    const url = await APPLICATIONS[framework]();
    const { secret } = await issue(suite.rest);
    const { status, headers } = await fetch(url, { headers: { "x-api-key": secret, connection: "close" } });
    expect([status, headers.get("ratelimit"), headers.get("ratelimit-policy")]).toEqual([200, null, null]);
  });
});

test("the fields have the form of those of express-rate-limit", async () => {
  const app = express();
  app.use("/theirs", rateLimit({ windowMs: 86_400_000, limit: 2, identifier: "requests", standardHeaders: "draft-8" }));
  app.use("/ours", expressMiddleware(createKeyVerifier({ baseUrl: suite.server.url })));
  app.use((_, response) => void response.send("ok"));
  const server = createServer(app);
  onTestFinished(() => void server.close());
  const port = await listenLocally(server);
  const { secret } = await issue(suite.rest, { rate_limits: [PER_DAY] });
  const seen = async (path: string) => {
    const headers = { "x-api-key": secret, connection: "close" };
    const answer = await fetch(`http://127.0.0.1:${port}/${path}`, { headers });
    const { policies, states } = readRateLimitFields(answer.headers);
    // A partition key is optional.
    const { pk: _, ...policy } = policies.requests ?? {};
    const { pk: __, t, ...state } = states.requests ?? {};
    const hasDelay = Number.isInteger(Number(answer.headers.get("retry-after") ?? "none"));
    return { status: answer.status, policy, state, hasReset: Number.isInteger(t), hasDelay };
  };
  for (const [status, r] of [
    [200, 1],
    [200, 0],
    [429, 0],
  ] as const) {
    const expected = { status, policy: { q: 2, w: 86_400 }, state: { r }, hasReset: true, hasDelay: status === 429 };
    expect([await seen("theirs"), await seen("ours")]).toEqual([expected, expected]);
  }
});

describe("a verifier with a cache", () => {
  const cached = () => createKeyVerifier({ baseUrl: suite.server.url, maxAgeMs: 60_000 });

  test("charges every verification of a key with limits, also those that are concurrent", async () => {
    const { secret } = await issue(suite.rest, { rate_limits: [{ ...PER_DAY, quota: 5 }] });
    const verifier = cached();
    const verdicts = await Promise.all(Array.from({ length: 9 }, () => verifier.verify(secret)));
    expect(verdicts.filter(({ ok }) => ok)).toHaveLength(5);
    const rejected = verdicts.find(({ ok }) => !ok);
    expect(rejected).toMatchObject({
      reason: "RATE_LIMITED",
      limits: [{ name: "requests", quota: 5, window: 86_400, remaining: 0, exceeded: true }],
      credential: { actorId: "actor_1" },
      retryAfter: expect.any(Number),
    });
  });

  test("keeps the verdict on a key without limits", async () => {
    const { secret } = await issue(suite.rest);
    const verifier = cached();
    const [first, second] = [await verifier.verify(secret), await verifier.verify(secret)];
    expect(second).toBe(first);
  });

  test("is not told to wait for a limit that is not enforced", async () => {
    const shadow = { ...PER_DAY, name: "shadow", quota: 1, enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" };
    const limits = { rate_limits: [{ ...PER_DAY, window: "1h", quota: 1 }, shadow] };
    const { secret } = await issue(suite.rest, limits);
    const verifier = cached();
    expect((await verifier.verify(secret)).ok).toBe(true);
    const rejected = await verifier.verify(secret);
    expect(rejected).toMatchObject({
      ok: false,
      reason: "RATE_LIMITED",
      limits: [{ exceeded: true }, { exceeded: true }],
    });
    if (!rejected.ok) expect(rejected.retryAfter).toBeLessThanOrEqual(3_600);
  });

  test("charges what the presentation says, and reports a quota", async () => {
    const { secret } = await issue(suite.rest, LIMITS);
    const verifier = cached();
    const verdict = await verifier.verify(secret, {
      charges: [
        { name: "monthly", cost: 5 },
        { name: "requests", cost: 0 },
      ],
    });
    expect(verdict).toMatchObject({
      ok: true,
      credential: {
        limits: [
          { name: "requests", remaining: 2, exceeded: false },
          { name: "monthly", quota: 9, remaining: 4, resetTime: expect.any(Date) },
        ],
      },
    });
    const again = await verifier.verify(secret, { charges: [{ name: "monthly", cost: 5 }] });
    expect(again).toMatchObject({ ok: false, reason: "QUOTA_EXCEEDED" });
  });
});
