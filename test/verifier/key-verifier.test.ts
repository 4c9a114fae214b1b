import { create, toBinary } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { VerificationError, VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { createKeyholdClient } from "../../src/client/index.ts";
import { CredentialType, createKeyVerifier, type KeyVerifierOptions } from "../../src/verifier/index.ts";
import { derive, revoke } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { issue } from "../support/rest.ts";
import { countedFetch, handClock, withHeaders } from "./counted-fetch.ts";

const suite = useGuardedService();

let token: string;
let secret: string;
let keyId: string;
beforeAll(async () => {
  token = suite.token("keyhold:verify");
  ({ secret, keyId } = await issue(suite.rest, { scopes: ["read"], metadata: { env: "prod" }, ttl: "1h" }));
});

function verifier(options: Partial<KeyVerifierOptions> = {}) {
  const clock = handClock();
  const counted = countedFetch();
  const client = { baseUrl: suite.server.url, token, fetch: counted.fetch };
  const { verify } = createKeyVerifier({ ...client, monotonic: clock.now, ...options });
  return { verify, clock, ...counted };
}

test("a verdict has the identity of the caller", async () => {
  expect(await verifier().verify(secret)).toEqual({
    ok: true,
    credential: {
      keyId,
      actorId: "actor_1",
      scopes: ["read"],
      issuer: "keyhold",
      expireTime: expect.any(Date),
      credentialType: CredentialType.ISSUED_API_KEY,
      metadata: { env: "prod" },
    },
  });
  const macaroon = await derive(suite.rest, secret, { algorithm: "TOKEN_ALGORITHM_MACAROON" });
  expect(await verifier().verify(macaroon.token)).toMatchObject({
    credential: { credentialType: CredentialType.MACAROON },
  });
});

test.for([
  ["nobody's", "NOT_FOUND"],
  ["kh_v1_", "INVALID_FORMAT"],
  ["", "INVALID_FORMAT"],
  ["x".repeat(9_000), "INVALID_FORMAT"],
])("a rejection is a value, for %j", async ([credential = "", reason]) => {
  expect(await verifier().verify(credential)).toMatchObject({ ok: false, reason });
});

test("a revocation takes effect at once: nothing is cached by default", async () => {
  const { secret, keyId } = await issue(suite.rest);
  const { verify, count } = verifier();
  expect(await verify(secret)).toMatchObject({ ok: true });
  await revoke(suite.rest, keyId);
  expect(await verify(secret)).toMatchObject({ ok: false, reason: "REVOKED" });
  expect(count()).toBe(2);
});

test("does not join a call in flight from before a revocation", async () => {
  const { secret, keyId } = await issue(suite.rest);
  const { verify, use } = verifier();
  const [answered, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  use(async (...request) => {
    const response = await fetch(...request);
    answered.resolve();
    await released.promise;
    return response;
  });
  const before = verify(secret);
  await answered.promise;
  await revoke(suite.rest, keyId);
  use(fetch);
  expect(await verify(secret)).toMatchObject({ ok: false, reason: "REVOKED" });
  released.resolve();
  expect(await before).toMatchObject({ ok: true });
});

test("caches a verdict for maxAgeMs since the start of its call", async () => {
  const { secret, keyId } = await issue(suite.rest);
  const { verify, clock, count } = verifier({ maxAgeMs: 1_000 });
  await Promise.all(Array.from({ length: 20 }, () => verify(secret)));
  await revoke(suite.rest, keyId);
  clock.pass(999);
  expect(await verify(secret)).toMatchObject({ ok: true });
  expect(count()).toBe(1);
  clock.pass(1);
  expect(await verify(secret)).toMatchObject({ ok: false, reason: "REVOKED" });
  clock.pass(999);
  await verify(secret);
  expect(count()).toBe(2);
});

test("the duration of the call counts toward the age", async () => {
  const { verify, clock, use, count } = verifier({ maxAgeMs: 1_000 });
  use((...request) => {
    clock.pass(2_000);
    return fetch(...request);
  });
  await verify(secret);
  await verify(secret);
  expect(count()).toBe(2);
});

test("a cached verdict expires with its credential", async () => {
  const { body } = await suite.rest("GET", `/v2alpha1/admin/issuedApiKeys/${keyId}`);
  const now = () => Date.parse(body.expire_time) - 500;
  const { verify, clock, count } = verifier({ maxAgeMs: 60_000, clock: { now } });
  await verify(secret);
  clock.pass(499);
  await verify(secret);
  expect(count()).toBe(1);
  clock.pass(1);
  await verify(secret);
  expect(count()).toBe(2);
});

test("honors Cache-Control and Age", async () => {
  const followed = verifier();
  followed.use(withHeaders({ "cache-control": "private, max-age=10", age: "4" }));
  await followed.verify(secret);
  followed.clock.pass(5_999);
  await followed.verify(secret);
  expect(followed.count()).toBe(1);
  followed.clock.pass(1);
  await followed.verify(secret);
  expect(followed.count()).toBe(2);

  const shorter = verifier({ maxAgeMs: 1_000 });
  shorter.use(withHeaders({ "cache-control": "max-age=10" }));
  await shorter.verify(secret);
  shorter.clock.pass(1_000);
  await shorter.verify(secret);
  expect(shorter.count()).toBe(2);

  const forbidden = verifier({ maxAgeMs: 1_000 });
  forbidden.use(withHeaders({ "cache-control": "no-store" }));
  await forbidden.verify(secret);
  await forbidden.verify(secret);
  expect(forbidden.count()).toBe(2);
});

test("the cache is bounded", async () => {
  const { verify, count } = verifier({ maxAgeMs: 60_000, cacheSize: 3 });
  for (let n = 0; n < 10; n++) await verify(`nobody ${n}`);
  await verify("nobody 9");
  expect(count()).toBe(10);
  await verify("nobody 0");
  expect(count()).toBe(11);
  const none = verifier({ maxAgeMs: 60_000, cacheSize: 0 });
  await none.verify(secret);
  await none.verify(secret);
  expect(none.count()).toBe(2);
});

test("a failed call is UNAVAILABLE and not cached", async () => {
  const { verify, use } = verifier({ maxAgeMs: 60_000 });
  use(async () => new Response("", { status: 500 }));
  expect(await verify(secret)).toMatchObject({ ok: false, reason: "UNAVAILABLE", cause: expect.any(Error) });
  use(fetch);
  expect(await verify(secret)).toMatchObject({ ok: true });
  const forbidden = createKeyVerifier({ baseUrl: suite.server.url, token: suite.token("keyhold:derive") });
  expect(await forbidden.verify(secret)).toMatchObject({ ok: false, reason: "UNAVAILABLE" });
});

describe("where a credential is presented", () => {
  const here = "192.0.2.7";
  let restricted: string;
  beforeAll(async () => {
    const { secret, keyId } = await issue(suite.rest);
    await suite.sql`UPDATE api_keys SET allowed_cidrs = '{192.0.2.0/24}' WHERE key_id = ${keyId}`;
    restricted = secret;
  });

  test("the address is sent to Keyhold", async () => {
    const { verify } = verifier();
    expect(await verify(restricted, { clientIp: here })).toMatchObject({ ok: true });
    for (const clientIp of [undefined, "198.51.100.1", "", "x".repeat(9_000)])
      expect(await verify(restricted, { clientIp })).toMatchObject({ ok: false, reason: "IP_NOT_ALLOWED" });
    expect(await verify(secret, { clientIp: "x".repeat(9_000) })).toMatchObject({ ok: true });
  });

  test("a disabled key is rejected", async () => {
    const { secret, keyId } = await issue(suite.rest);
    await suite.sql`UPDATE api_keys SET disable_time = now() WHERE key_id = ${keyId}`;
    expect(await verifier().verify(secret)).toMatchObject({ ok: false, reason: "DISABLED" });
  });

  test("a missing scope is named, with whose credential it is", async () => {
    const { verify } = verifier();
    expect(await verify(secret, { requiredScopes: ["read"] })).toMatchObject({ ok: true });
    expect(await verify(secret, { requiredScopes: ["write", "read", "write"] })).toEqual({
      ok: false,
      reason: "INSUFFICIENT_SCOPE",
      message: expect.any(String),
      missingScopes: ["write"],
      credential: expect.objectContaining({ keyId, actorId: "actor_1", scopes: ["read"], metadata: { env: "prod" } }),
    });
  });

  test("the scopes are checked even if the server ignores them", async () => {
    const { apiKeys } = createKeyholdClient({ baseUrl: suite.server.url, token });
    const older = { ...apiKeys, verifyApiKey: () => apiKeys.verifyApiKey({ credential: secret }) };
    const { verify } = createKeyVerifier({ client: { apiKeys: older } });
    expect(await verify(secret, { requiredScopes: ["write"] })).toMatchObject({
      reason: "INSUFFICIENT_SCOPE",
      missingScopes: ["write"],
    });
  });

  test("a cached verdict is never that for another address, audience or list of scopes", async () => {
    const { verify, count } = verifier({ maxAgeMs: 60_000 });
    const { token } = await derive(suite.rest, secret);
    const cases = [
      [restricted, { clientIp: here }, true],
      [restricted, { clientIp: "198.51.100.1" }, false],
      [restricted, {}, false],
      [token, {}, true],
      [token, { audience: "books" }, false],
      [token, { requiredScopes: ["read"] }, true],
      [token, { requiredScopes: ["books"] }, false],
      [token, { requiredScopes: ["read", "books"] }, false],
      [token, { clientIp: "read" }, true],
    ] as const;
    for (const round of [1, 2]) {
      for (const [credential, presentation, ok] of cases) {
        const verdict = await verify(credential, presentation);
        expect({ round, presentation, ok: verdict.ok }).toEqual({ round, presentation, ok });
      }
    }
    expect(count()).toBe(cases.length);
  });

  test("a presentation that Keyhold does not accept is an error of the program", async () => {
    const { verify, count } = verifier({ maxAgeMs: 60_000 });
    const call = () => verify(secret, { requiredScopes: ["two words"] });
    await expect(call()).rejects.toThrow(/^required_scopes\[0\]: /);
    await expect(call()).rejects.toThrow(TypeError);
    await expect(verify(secret, { audience: "bücher" })).rejects.toThrow(/^audience: /);
    expect(count()).toBe(3);
  });
});

test.each([
  [VerificationError.INTERNAL, "UNAVAILABLE", 2],
  [VerificationError.NOT_FOUND, "NOT_FOUND", 1],
])(
  "the verdict %i is %s and costs %i calls for two verifications: INTERNAL is never cached",
  async (errorCode, reason, calls) => {
    let count = 0;
    const fetch = async () => {
      count++;
      const body = toBinary(
        VerifyApiKeyResponseSchema,
        create(VerifyApiKeyResponseSchema, { isValid: false, errorCode }),
      );
      return new Response(body, { headers: { "content-type": "application/proto" } });
    };
    const { verify } = createKeyVerifier({ baseUrl: "http://127.0.0.1:1", token: "t", fetch, maxAgeMs: 60_000 });
    for (let i = 0; i < 2; i++) expect(await verify("a-credential")).toMatchObject({ ok: false, reason });
    expect(count).toBe(calls);
  },
);
