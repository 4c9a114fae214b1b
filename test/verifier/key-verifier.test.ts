import { beforeAll, expect, test } from "vitest";
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
