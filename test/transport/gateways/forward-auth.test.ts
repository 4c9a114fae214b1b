import { beforeAll, expect, test } from "vitest";
import { revoke } from "../../support/conformance.ts";
import { type Asked, type Fields, forwardAuth } from "../../support/forward-auth.ts";
import { useGuardedService } from "../../support/guarded.ts";
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
