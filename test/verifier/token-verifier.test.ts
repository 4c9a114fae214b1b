import { randomUUID } from "node:crypto";
import { decodeProtectedHeader } from "jose";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CredentialType, createKeyVerifier, createTokenVerifier } from "../../src/verifier/index.ts";
import { derive, revoke, table, useService } from "../support/conformance.ts";
import { issue, paths, restClient } from "../support/rest.ts";
import { startTestServer } from "../support/server.ts";
import { kidOf, publishedKids, rotateUnder, untilPublished } from "../support/signing-keys.ts";
import vectors from "../vectors/jwt.ts";
import es256Vectors from "../vectors/jwt-es256.ts";
import { countedFetch, handClock, hungFetch, withHeaders } from "./counted-fetch.ts";

const suite = useService();

/** Milliseconds for which the server allows its keys to be cached. */
const MAX_AGE = 300_000;

let token: string;
let keyId: string;
let secret: string;
beforeAll(async () => {
  ({ secret, keyId } = await issue(suite.rest, { scopes: ["read", "write"] }));
  ({ token } = await derive(suite.rest, secret, { custom_claims: { tenant: "t" }, scopes: ["read"] }));
});

/** Returns a verifier with its own clock, whose requests are counted. */
function verifier(options: Parameters<typeof createTokenVerifier>[0] = {}) {
  const clock = handClock();
  const counted = countedFetch();
  const { verify } = createTokenVerifier({
    baseUrl: suite.server.url,
    fetch: counted.fetch,
    monotonic: clock.now,
    ...options,
  });
  return { verify, clock, ...counted };
}

/** Returns a token that names this key and has no valid signature. */
function forged(kid: string): string {
  const [, claims] = token.split(".");
  const header = Buffer.from(JSON.stringify({ alg: "EdDSA", typ: "JWT", kid })).toString("base64url");
  return `${header}.${claims}.${Buffer.alloc(64).toString("base64url")}`;
}

test("a token has the identity of the caller", async () => {
  const verdict = await verifier().verify(token);
  expect(verdict).toEqual({
    ok: true,
    credential: {
      keyId,
      actorId: "actor_1",
      scopes: ["read"],
      issuer: "keyhold",
      tokenId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      issueTime: expect.any(Date),
      expireTime: expect.any(Date),
      claims: { tenant: "t" },
    },
  });
});

test("a revocation is detected online, not offline", async () => {
  const { secret, keyId } = await issue(suite.rest);
  const { token } = await derive(suite.rest, secret);
  await revoke(suite.rest, keyId);
  expect(await verifier().verify(token)).toMatchObject({ ok: true });
  const online = createKeyVerifier({ baseUrl: suite.server.url });
  expect(await online.verify(token)).toMatchObject({ ok: false, reason: "REVOKED" });
});

const VECTOR_OPTIONS = {
  issuer: vectors.issuer,
  clockToleranceMs: 0,
  fetch: async () => Response.json({ keys: vectors.keys }),
};
const at = (now: number | undefined) => ({ clock: { now: () => now ?? vectors.now } });

test.for(table(vectors.valid))("accepts the vector $name", async ({ token, expected, ...vector }) => {
  const { verify } = verifier({ ...VECTOR_OPTIONS, ...at("now" in vector ? Number(vector.now) : undefined) });
  const audience = "audience" in expected ? expected.audience?.[0] : undefined;
  const { secretVersion, ...credential } = {
    ...expected,
    issueTime: new Date(expected.issueTime),
    expireTime: new Date(expected.expireTime),
  };
  expect(await verify(token, { audience })).toEqual({ ok: true, credential });
});

/** Rejected by the server, which is stricter about form; only the owner of the signing key could create it. */
const TAKEN_OFFLINE = "header with a byte order mark";
const refused = table(vectors.invalid.filter(({ name }) => name !== TAKEN_OFFLINE));

test.for(refused)("rejects the vector $name", async ({ token, ...vector }) => {
  const verdict = await verifier({ ...VECTOR_OPTIONS, ...at("now" in vector ? Number(vector.now) : undefined) }).verify(
    token,
  );
  expect(verdict).toMatchObject({ ok: false });
});

describe("ES256 vectors", () => {
  /** With the keys as published, and without the member that names their algorithm. */
  const withAlgorithm = es256Vectors.keys;
  const without = withAlgorithm.map(({ alg: _, ...key }) => key);

  test.for(table(es256Vectors.valid))("accepts $name", async ({ token, expected: { actorId } }) => {
    for (const keys of [withAlgorithm, without]) {
      const { verify } = verifier({ ...VECTOR_OPTIONS, ...at(undefined), fetch: async () => Response.json({ keys }) });
      expect(await verify(token)).toMatchObject({ ok: true, credential: { actorId } });
    }
  });

  test.for(table(es256Vectors.invalid))("rejects: $name", async ({ token }) => {
    for (const keys of [withAlgorithm, without]) {
      const { verify } = verifier({ ...VECTOR_OPTIONS, ...at(undefined), fetch: async () => Response.json({ keys }) });
      expect(await verify(token)).toMatchObject({ ok: false });
    }
  });
});

test("a token cannot choose its algorithm, even if the keys name none", async () => {
  const keys = vectors.keys.map(({ alg: _, ...key }) => key);
  const { verify } = verifier({ ...VECTOR_OPTIONS, ...at(undefined), fetch: async () => Response.json({ keys }) });
  for (const { token } of table(vectors.valid.slice(0, 1))) expect(await verify(token)).toMatchObject({ ok: true });
  for (const { name, token } of table(refused.filter(({ name }) => /^alg |^HS256/.test(name)))) {
    expect({ name, ...(await verify(token)) }).toMatchObject({ name, ok: false });
  }
});

test("tolerates clock skew", async () => {
  const { expireTime } = await derive(suite.rest, secret).then(({ expire_time }) => ({
    expireTime: Date.parse(expire_time),
  }));
  const { token: short } = await derive(suite.rest, secret);
  const judge = (now: number) => verifier({ clock: { now: () => now }, clockToleranceMs: 2_000 }).verify(short);
  expect(await judge(expireTime + 1_000)).toMatchObject({ ok: true });
  expect(await judge(expireTime + 10_000)).toMatchObject({ ok: false, reason: "EXPIRED" });
});

test("rejects a token of another issuer", async () => {
  expect(await verifier({ issuer: "another" }).verify(token)).toMatchObject({ reason: "SIGNATURE_INVALID" });
});

test("concurrent callers share a read of the keys, which are cached as the server says", async () => {
  const { verify, clock, statuses } = verifier();
  await Promise.all(Array.from({ length: 20 }, () => verify(token)));
  clock.pass(MAX_AGE - 1);
  expect(await verify(token)).toMatchObject({ ok: true });
  expect(statuses).toEqual([200]);
  clock.pass(1);
  await Promise.all(Array.from({ length: 20 }, () => verify(token)));
  expect(statuses).toEqual([200, 304]);
});

test("the first token of a new signing key triggers a read", async () => {
  const { verify, clock, count } = verifier();
  await verify(token);
  const kid = await rotateUnder(suite.sql);
  await untilPublished(suite.rest, [kid, kidOf(token)]);
  const { token: newer } = await derive(suite.rest, secret);
  expect(kidOf(newer)).toBe(kid);
  clock.pass(5_000);
  expect(await verify(newer)).toMatchObject({ ok: true });
  expect(await verify(token)).toMatchObject({ ok: true });
  expect(count()).toBe(2);
});

test("accepts tokens of both algorithms before and after a change, which triggers a read", async () => {
  const { verify, clock, count } = verifier();
  const tokens = [token];
  const known = await publishedKids(suite.rest);
  expect(await verify(token)).toMatchObject({ ok: true });
  for (const algorithm of ["ES256", "EdDSA"] as const) {
    const kid = await rotateUnder(suite.sql, { algorithm });
    await untilPublished(suite.rest, [kid, ...known]);
    known.unshift(kid);
    tokens.push((await derive(suite.rest, secret)).token);
    clock.pass(5_000);
    for (const one of tokens) expect(await verify(one)).toMatchObject({ ok: true });
  }
  expect(tokens.map((one) => decodeProtectedHeader(one).alg)).toEqual(["EdDSA", "ES256", "EdDSA"]);
  expect(count()).toBe(3);
});

test("unknown keys trigger one read per cool-down", async () => {
  const { verify, clock, count } = verifier();
  await verify(token);
  const flood = () => Promise.all(Array.from({ length: 200 }, () => verify(forged(randomUUID()))));
  for (const reads of [1, 2, 3]) {
    for (const verdict of await flood()) expect(verdict).toMatchObject({ ok: false, reason: "SIGNATURE_INVALID" });
    expect(count()).toBe(reads);
    clock.pass(5_000);
  }
});

test("stale keys are used while the server is unreachable, up to a limit", async () => {
  const server = await startTestServer();
  let isOpen = true;
  onTestFinished(async () => (isOpen ? server.close() : undefined));
  const rest = restClient(server);
  const { token: own } = await derive(rest, (await issue(rest)).secret);
  const { verify, clock, count } = verifier({ baseUrl: server.url, maxStalenessMs: 60_000 });
  await verify(own);
  await server.close();
  isOpen = false;
  clock.pass(MAX_AGE);
  expect(await verify(own)).toMatchObject({ ok: true });
  expect(await verify(forged("unknown"))).toMatchObject({ ok: false, reason: "UNAVAILABLE" });
  expect(count()).toBe(2);
  clock.pass(59_999);
  expect(await verify(own)).toMatchObject({ ok: true });
  clock.pass(1);
  expect(await verify(own)).toMatchObject({ ok: false, reason: "UNAVAILABLE", cause: expect.any(Error) });
});

test("a hanging server delays only one call", async () => {
  const { verify, clock, use, count } = verifier({ timeoutMs: 20 });
  await verify(token);
  use(hungFetch);
  clock.pass(MAX_AGE);
  expect(await verify(token)).toMatchObject({ ok: true });
  clock.pass(5_000);
  const hung = Promise.withResolvers<Response>();
  use(() => hung.promise);
  expect(await verify(token)).toMatchObject({ ok: true });
  expect(count()).toBe(3);
  hung.resolve(await fetch(`${suite.server.url}/v2alpha1/derivedKeys/jwks.json`));
});

test("recovers when the server is reachable again, without retry storms", async () => {
  const { verify, clock, use, count } = verifier();
  use(async () => new Response("no", { status: 500 }));
  for (const _ of [1, 2, 3]) expect(await verify(token)).toMatchObject({ ok: false, reason: "UNAVAILABLE" });
  expect(count()).toBe(1);
  use(fetch);
  clock.pass(5_000);
  expect(await verify(token)).toMatchObject({ ok: true });
});

test.for(["[]", '{"keys": 1}', "not JSON"])("a response that is not a JWK Set is a failure: %s", async (text) => {
  const { verify, use } = verifier();
  use(async () => new Response(text));
  expect(await verify(token)).toMatchObject({ ok: false, reason: "UNAVAILABLE" });
});

test("uncacheable keys are read again, at most once per cool-down", async () => {
  const { verify, clock, use, count } = verifier();
  use(withHeaders({ "cache-control": "no-store" }));
  for (const reads of [1, 2]) {
    await Promise.all([verify(token), verify(token)]);
    expect(await verify(token)).toMatchObject({ ok: true });
    expect(count()).toBe(reads);
    clock.pass(5_000);
  }
});

test("only inconclusive credentials are verified online", async () => {
  const asked = countedFetch();
  const online = createKeyVerifier({ baseUrl: suite.server.url, fetch: asked.fetch });
  const { verify, use } = verifier({ online });
  use(async () => new Response("no", { status: 500 }));
  expect(await verify(token)).toMatchObject({ ok: true, credential: { credentialType: CredentialType.JWT } });
  const working = verifier({ online });
  expect(await working.verify(secret)).toMatchObject({ ok: true, credential: { keyId } });
  expect(await working.verify("nonsense")).toMatchObject({ ok: false, reason: "NOT_FOUND" });
  expect(asked.count()).toBe(3);
  expect(await working.verify(token)).toMatchObject({ ok: true, credential: { claims: { tenant: "t" } } });
  expect(await working.verify(forged(kidOf(token)))).toMatchObject({ ok: false, reason: "SIGNATURE_INVALID" });
  expect(asked.count()).toBe(3);
});

test("requires the address of the keys", () => {
  expect(() => createTokenVerifier({})).toThrow("baseUrl: must be an http or https URL");
  expect(() => createTokenVerifier({ jwksUrl: "ftp://x" })).toThrow("jwksUrl: must be an http or https URL");
});

describe("where a token is presented", () => {
  const AUDIENCES = table<readonly string[]>([[], ["books"], ["books", "films"]]);
  /** Tokens for each audience, with the scope read. */
  let tokens: string[];
  beforeAll(async () => {
    const derived = AUDIENCES.map((audience) => derive(suite.rest, secret, { audience, scopes: ["read"] }));
    tokens = (await Promise.all(derived)).map(({ token }) => token);
  });

  const presentations = table(
    [undefined, "books", "films", "games", "Books"].flatMap((audience) =>
      [[], ["read"], ["write"], ["read", "write", "write"]].map((requiredScopes) => ({ audience, requiredScopes })),
    ),
  );

  test.for(presentations)("the server and both verifiers agree on %j", async (presentation) => {
    const online = createKeyVerifier({ baseUrl: suite.server.url });
    const offline = createTokenVerifier({ baseUrl: suite.server.url });
    const { audience, requiredScopes: required_scopes } = presentation;
    for (const [place, credential] of tokens.entries()) {
      const accepting = AUDIENCES[place] ?? [];
      const isHere = audience === undefined ? accepting.length === 0 : accepting.includes(audience);
      const isAllowed = required_scopes.every((scope) => scope === "read");
      const request = { credential, audience, required_scopes };
      const { body } = await suite.rest("POST", `${paths.keys}:verify`, request);
      const answer = {
        reason: body.error_code?.replace("VERIFICATION_ERROR_", ""),
        keyId: body.key_id,
        missingScopes: body.error_code && body.missing_scopes.length > 0 ? body.missing_scopes : undefined,
      };
      expect(answer).toEqual({
        reason: isHere ? (isAllowed ? undefined : "INSUFFICIENT_SCOPE") : "AUDIENCE_MISMATCH",
        keyId: isHere ? keyId : undefined,
        missingScopes: isHere && !isAllowed ? ["write"] : undefined,
      });
      for (const verifier of [online, offline]) {
        const verdict = await verifier.verify(credential, presentation);
        const {
          reason,
          credential: rejected,
          missingScopes,
        } = { reason: undefined, missingScopes: undefined, ...verdict };
        expect({ reason, keyId: rejected?.keyId, missingScopes }).toEqual(answer);
      }
    }
  });

  test("a token for an audience has it", async () => {
    const { verify } = verifier();
    const [, , both = ""] = tokens;
    expect(await verify(both, { audience: "films" })).toMatchObject({ credential: { audience: ["books", "films"] } });
  });

  test("neither the address nor what has changed of the key is known offline", async () => {
    const { secret, keyId } = await issue(suite.rest);
    const { token } = await derive(suite.rest, secret);
    const restriction = { allowed_cidrs: ["192.0.2.0/24"] };
    const online = createKeyVerifier({ baseUrl: suite.server.url });
    const here = { clientIp: "198.51.100.1" };
    const change = { ip_restriction: restriction };
    expect((await suite.rest("PATCH", `${paths.issued}/${keyId}?update_mask=ip_restriction`, change)).status).toBe(200);
    expect(await online.verify(token, here)).toMatchObject({ reason: "IP_NOT_ALLOWED" });
    expect(await verifier().verify(token, here)).toMatchObject({ ok: true });
    expect((await suite.rest("POST", `${paths.issued}/${keyId}:disable`, {})).status).toBe(200);
    expect(await online.verify(token, here)).toMatchObject({ reason: "DISABLED" });
    expect(await verifier().verify(token, here)).toMatchObject({ ok: true });
  });

  test("what cannot be verified offline is presented online in the same way", async () => {
    const { secret } = await issue(suite.rest, {
      scopes: ["read"],
      ip_restriction: { allowed_cidrs: ["192.0.2.0/24"] },
    });
    const { verify } = verifier({ online: createKeyVerifier({ baseUrl: suite.server.url }) });
    const here = { clientIp: "192.0.2.1", audience: "books" };
    expect(await verify(secret, here)).toMatchObject({ ok: true });
    expect(await verify(secret, { ...here, requiredScopes: ["write"] })).toMatchObject({ missingScopes: ["write"] });
    expect(await verify(secret)).toMatchObject({ reason: "IP_NOT_ALLOWED" });
  });
});
