import { beforeAll, expect, test } from "vitest";
import { revoke } from "../../support/conformance.ts";
import { type Asked, type Fields, forwardAuth } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { readRateLimitFields } from "../../support/rate-limit-fields.ts";
import { issue } from "../../support/rest.ts";

const suite = useGuardedService(() => ({ KEYHOLD_GATEWAYS: "forward-auth", KEYHOLD_GATEWAY_METADATA: "plan_id" }));

let key: { readonly keyId: string; readonly secret: string };
beforeAll(async () => {
  key = await issue(suite.rest, { actor_id: "team 1", scopes: ["read", "write"], metadata: { plan_id: "p=1%\r\nä" } });
});

/** Asks with the token of the gateway. */
const ask = (headers: Fields, more: Asked = {}) =>
  forwardAuth(suite.server, {
    ...more,
    headers: [["X-Keyhold-Authorization", `Bearer ${suite.token("keyhold:verify")}`], ...headers],
  });
const bearer = (credential: string): Fields => [["Authorization", `Bearer ${credential}`]];

test("a valid credential is answered with its identity", async () => {
  const { status, headers, text } = await ask(bearer(key.secret));
  expect([status, text]).toEqual([200, ""]);
  expect(headers).toMatchObject({
    "cache-control": "no-store",
    "content-length": "0",
    "x-keyhold-key-id": key.keyId,
    "x-keyhold-actor-id": "team%201",
    "x-keyhold-scopes": "read write",
    "x-keyhold-metadata-plan-id": "p=1%25%0D%0A%C3%A4",
  });
});

test("without a credential the challenge has no error code", async () => {
  const { status, headers, reason } = await ask([]);
  expect([status, reason]).toEqual([401, "CREDENTIAL_INVALID"]);
  expect(headers).toMatchObject({ "cache-control": "no-store", "www-authenticate": 'Bearer realm="keyhold"' });
});

test("a revoked key is refused at once", async () => {
  const { keyId, secret } = await issue(suite.rest);
  expect((await ask(bearer(secret))).status).toBe(200);
  await revoke(suite.rest, keyId);
  const { status, headers, reason } = await ask(bearer(secret));
  expect([status, reason]).toEqual([401, "VERIFICATION_ERROR_REVOKED"]);
  expect(headers["www-authenticate"]).toBe(
    'Bearer realm="keyhold", error="invalid_token", error_description="the key is revoked"',
  );
});

test("a key whose limit is exceeded is answered 429, with when to try again", async () => {
  const limited = await issue(suite.rest, { rate_limits: [{ name: "requests", quota: 5, window: "24h" }] });
  const suffix = "?charges=requests:2,other";
  expect((await ask(bearer(limited.secret), { suffix })).status).toBe(200);
  const accepted = await ask(bearer(limited.secret), { suffix: ";charges=requests:2/path" });
  expect(accepted.status).toBe(200);
  // As an RFC 9651 parser of others reads them.
  const { policies, states } = readRateLimitFields(new Headers(accepted.headers as Record<string, string>));
  expect(policies).toEqual({ requests: { q: 5, w: 86_400 } });
  expect(states).toEqual({ requests: { r: 1, t: expect.any(Number) } });
  expect(accepted.headers["retry-after"]).toBeUndefined();
  const { status, headers, reason, text } = await ask(bearer(limited.secret), { suffix });
  expect([status, reason]).toEqual([429, "VERIFICATION_ERROR_RATE_LIMITED"]);
  expect(headers).toMatchObject({ "cache-control": "no-store", "ratelimit-policy": '"requests";q=5;w=86400' });
  expect(headers.ratelimit).toMatch(/^"requests";r=1;t=\d+$/);
  expect(Number(headers["retry-after"])).toBeGreaterThan(10_000);
  const { error } = JSON.parse(text);
  expect(error).toMatchObject({ code: 429, status: "RESOURCE_EXHAUSTED" });
  expect(error.details.slice(1)).toMatchObject([
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: `${headers["retry-after"]}s` },
    { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ subject: "limit:requests" }] },
  ]);
  expect((await ask(bearer(limited.secret))).status).toBe(200);
});

test("a limit that is not enforced neither denies nor changes when to try again", async () => {
  const shadow = { name: "long", quota: 1, window: "24h", enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" };
  const { secret } = await issue(suite.rest, { rate_limits: [{ name: "short", quota: 1, window: "1h" }, shadow] });
  expect((await ask(bearer(secret))).status).toBe(200);
  const { status, headers, text } = await ask(bearer(secret));
  expect(status).toBe(429);
  expect(Number(headers["retry-after"])).toBeLessThanOrEqual(3_600);
  expect(JSON.parse(text).error.details[2].violations).toMatchObject([{ subject: "limit:short" }]);
});

test("charges of a client's own query, which some gateways keep, are rejected", async () => {
  const headers: Fields = [...bearer(key.secret), ["X-Forwarded-Uri", "/orders?charges=requests:0"]];
  expect((await ask(headers, { suffix: "?charges=requests:0" })).status).toBe(400);
  expect((await ask(headers, { suffix: "?charges=requests:2" })).status).toBe(200);
});

test.each(["charges=", "charges=requests:-1", "charges=requests:x", "charges=Requests", `charges=${"a,".repeat(9)}`])(
  "charges that are malformed are rejected: %s",
  async (query) => {
    const { status, text } = await ask(bearer(key.secret), { suffix: `?${query}` });
    expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringMatching(/^charges: /)]);
  },
);

test("a missing scope is named", async () => {
  const { status, headers, reason } = await ask(bearer(key.secret), { suffix: "?required_scopes=read,admin" });
  expect([status, reason]).toEqual([403, "VERIFICATION_ERROR_INSUFFICIENT_SCOPE"]);
  expect(headers["www-authenticate"]).toBe('Bearer realm="keyhold", error="insufficient_scope", scope="read admin"');
});

test.each([
  [8192, "VERIFICATION_ERROR_NOT_FOUND"],
  [8193, "VERIFICATION_ERROR_INVALID_FORMAT"],
])("a credential of %i characters: %s", async (length, reason) => {
  expect(await ask(bearer("a".repeat(length)))).toMatchObject({ status: 401, reason });
});

test("the endpoint is off by default", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token" });
  const { status, reason } = await ask(bearer(key.secret));
  expect([status, reason]).toEqual([404, "PATH_NOT_FOUND"]);
});
