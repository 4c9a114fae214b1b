import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { createLocalJWKSet, decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { ApiKeysService, DeriveTokenRequestSchema, TokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  badCredential,
  between,
  derive,
  expectRefused,
  importKey,
  invalid,
  RFC_3339_UTC,
  revoke,
  succeeded,
  table,
  UUID_V7,
  useService,
} from "../support/conformance.ts";
import { withCaveats } from "../support/macaroon-caveats.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { callGrpc, frame, readConnectError, rpcPath, send } from "../support/wire.ts";

const suite = useService({ KEYHOLD_MAX_TOKEN_TTL: "20d", KEYHOLD_ALLOWED_CLAIMS: "nickname" });
const { rest } = suite;

const ALGORITHMS = ["TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"] as const;
const [JWT, MACAROON] = ALGORITHMS;

const deriveAt = (body: Json) => rest("POST", `${paths.keys}:derive`, body);
const now = () => new Date().toISOString();

/** Verifies with the published keys only. */
async function readJwt(token: string): Promise<{ payload: JWTPayload; header: Json }> {
  const jwks = createLocalJWKSet(succeeded(await rest("GET", paths.jwks)));
  const { payload } = await jwtVerify(token, jwks, { issuer: "keyhold", algorithms: ["EdDSA", "Ed25519"] });
  return { payload, header: decodeProtectedHeader(token) };
}

const OTHER_AUDIENCE = "VERIFICATION_ERROR_AUDIENCE_MISMATCH";

/** Returns the error code for each audience for which a credential is presented; undefined if it is valid. */
async function batchOf(credential: string, audiences: readonly (string | undefined)[]): Promise<Json[]> {
  const requests = audiences.map((audience) => ({ credential, audience }));
  const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, { requests }));
  return results.map((verdict: Json) => verdict.error_code);
}

const PARENTS = [
  ["an issued secret", async (fields: Json) => (await issue(rest, fields)).secret],
  ["an imported raw key", async (fields: Json) => (await importKey(rest, fields)).rawKey],
  ["a JWT", async (fields: Json) => (await derive(rest, (await issue(rest, fields)).secret)).token],
  [
    "a macaroon",
    async (fields: Json) => (await derive(rest, (await importKey(rest, fields)).rawKey, { algorithm: MACAROON })).token,
  ],
] as const;

describe.each(table(ALGORITHMS))("a token of %s", (algorithm) => {
  test.each(table(PARENTS))("is derived from %s", async (_, make) => {
    const parent = await make({ scopes: ["a", "b"], metadata: { k: "v" } });
    const token = await derive(rest, parent, { algorithm });
    expect(token).toEqual({
      token: expect.stringMatching(/^[\w-]+(?:\.[\w-]+\.[\w-]+)?$/),
      token_id: expect.stringMatching(UUID_V7),
      expire_time: expect.stringMatching(RFC_3339_UTC),
      scopes: ["a", "b"],
      claims: {},
      audience: [],
    });
    const { key_id, actor_id } = await verify(rest, parent);
    const { expire_time } = token;
    expect(await verify(rest, token.token)).toMatchObject({
      is_valid: true,
      key_id,
      actor_id,
      expire_time,
      scopes: ["a", "b"],
    });
  });

  test("lives an hour by default", async () => {
    const { secret } = await issue(rest);
    const [before, token, after] = [now(), await derive(rest, secret, { algorithm }), now()];
    expect(between(before, token.expire_time)).toBeGreaterThan(3_600_000 - 1000);
    expect(between(after, token.expire_time)).toBeLessThanOrEqual(3_600_000);
  });

  test("lives for the requested ttl, at most for KEYHOLD_MAX_TOKEN_TTL, and expire_time shows that", async () => {
    const { secret } = await issue(rest);
    for (const [ttl, milliseconds] of [
      ["10m", 600_000],
      ["1h30m", 5_400_000],
      ["20d", 20 * 86_400_000],
      ["10y", 20 * 86_400_000],
    ] as const) {
      const [before, token] = [now(), await derive(rest, secret, { algorithm, ttl })];
      expect(Math.abs(between(before, token.expire_time) - milliseconds)).toBeLessThan(2000);
    }
  });

  test.each(table(PARENTS))(
    "from %s never outlives the key: its life is capped, and expire_time shows that",
    async (_, make) => {
      const parent = await make({ ttl: "10m" });
      const end = (await verify(rest, parent)).expire_time;
      const token = await derive(rest, parent, { algorithm, ttl: "1d" });
      expect(between(token.expire_time, end)).toBeGreaterThanOrEqual(0);
      expect(between(token.expire_time, end)).toBeLessThan(1000);
      expect((await verify(rest, token.token)).expire_time).toBe(token.expire_time);
    },
  );

  test.each(table(PARENTS))("from %s has the requested scopes, each once", async (_, make) => {
    const parent = await make({ scopes: ["a", "b", "c"] });
    const token = await derive(rest, parent, { algorithm, scopes: ["c", "a", "c"] });
    expect(token.scopes).toEqual(["c", "a"]);
    expect([...(await verify(rest, token.token)).scopes].sort()).toEqual(["a", "c"]);
  });

  test.each(table(PARENTS))("from %s with a scope that the parent lacks is 403", async (_, make) => {
    const credential = await make({ scopes: ["a"] });
    expectRefused(await deriveAt({ credential, algorithm, scopes: ["a", "b"] }), {
      code: 403,
      status: "PERMISSION_DENIED",
      reason: "SCOPE_NOT_ALLOWED",
      metadata: { scope: "b" },
      fields: ["scopes"],
    });
  });

  test("has no scopes without requested or own scopes", async () => {
    const { secret } = await issue(rest, { scopes: ["a"] });
    const { secret: other } = await issue(rest);
    expect((await derive(rest, secret, { algorithm, scopes: [] })).scopes).toEqual(["a"]);
    expect((await derive(rest, other, { algorithm })).scopes).toEqual([]);
  });

  test("from a token can only be narrower", async () => {
    const { secret } = await issue(rest, { scopes: ["a", "b"] });
    const parent = await derive(rest, secret, {
      algorithm,
      scopes: ["a"],
      ttl: "10m",
      custom_claims: { tier: "gold" },
    });
    const child = await derive(rest, parent.token, {
      algorithm,
      ttl: "1d",
      custom_claims: { tier: "gold", region: "eu" },
    });
    const narrowed = { scopes: ["a"], claims: { tier: "gold", region: "eu" } };
    expect(child).toMatchObject(narrowed);
    expect(await verify(rest, child.token)).toMatchObject(narrowed);
    expect(Date.parse(child.expire_time)).toBeLessThanOrEqual(Date.parse(parent.expire_time));
    const more = { credential: parent.token, algorithm, scopes: ["b"] };
    expect((await deriveAt(more)).body.error).toMatchObject({ code: 403, status: "PERMISSION_DENIED" });
    const other = { credential: parent.token, algorithm, custom_claims: { tier: "silver" } };
    expect((await deriveAt(other)).body.error).toMatchObject({ code: 403, status: "PERMISSION_DENIED" });
  });

  test("that would be too long to verify is 400: it has too many scopes", async () => {
    const scopes = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(255, "x"));
    const { secret: credential } = await issue(rest, { scopes });
    expectRefused(await deriveAt({ credential, algorithm }), invalid("scopes"));
    expect((await derive(rest, credential, { algorithm, scopes: scopes.slice(0, 10) })).scopes).toEqual(
      scopes.slice(0, 10),
    );
  });

  const CLAIMS: readonly Json[] = [
    { tier: "gold" },
    { tier: "gold", region: "eu" },
    { n: 1, f: 1.5, yes: true, nothing: null, list: [1, "a", {}], object: { a: { b: "c" } } },
    { "": "empty", "a b": "space", "https://example.com/claim": "ü\u{1f511}" },
    {},
  ];

  test.each(table(CLAIMS))("carries %j", async (custom_claims) => {
    const { secret } = await issue(rest);
    const answer = await deriveAt({ credential: secret, algorithm, custom_claims });
    if (algorithm === MACAROON && "" in custom_claims) return expectRefused(answer, invalid("custom_claims"));
    expect(succeeded(answer).token.claims).toEqual(custom_claims);
  });

  const RESERVED = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope", "key_id", "parent_id", "secret_version"];

  test.each(table(RESERVED))("may not carry the claim %s from the caller", async (name) => {
    const { secret } = await issue(rest);
    const custom_claims = { tier: "gold", [name]: "mine" };
    expectRefused(await deriveAt({ credential: secret, algorithm, custom_claims }), invalid(`custom_claims.${name}`));
  });

  test("may not carry a registered claim from the caller, unless KEYHOLD_ALLOWED_CLAIMS has it", async () => {
    const { secret } = await issue(rest);
    const custom_claims = { tier: "gold", nickname: "Bo", email: "a@b.example", groups: [] };
    const answer = await deriveAt({ credential: secret, algorithm, custom_claims });
    expectRefused(answer, invalid("custom_claims.email", "custom_claims.groups"));
    expect(answer.body.error.message).toMatch(/KEYHOLD_ALLOWED_CLAIMS/);
  });

  test.each(table(PARENTS))("from %s is for the requested audience only", async (_, make) => {
    const token = await derive(rest, await make({}), { algorithm, audience: ["orders", "billing", "orders"] });
    expect(token.audience).toEqual(["orders", "billing"]);
    const verdicts = await batchOf(token.token, ["orders", "billing", "stock", undefined]);
    expect(verdicts).toEqual([undefined, undefined, OTHER_AUDIENCE, OTHER_AUDIENCE]);
    const [some, any] = [{ audience: ["billing"] }, {}];
    expect((await derive(rest, token.token, { algorithm, ...some })).audience).toEqual(["billing"]);
    expect((await derive(rest, token.token, { algorithm, ...any })).audience).toEqual(["orders", "billing"]);
    const wider = { credential: token.token, algorithm, audience: ["stock"] };
    expect((await deriveAt(wider)).body.error).toMatchObject({ code: 403, status: "PERMISSION_DENIED" });
  });

  const AUDIENCES: readonly (readonly [field: string, audience: unknown])[] = [
    ["audience[1]", ["a", ""]],
    ["audience[0]", ["a b"]],
    ["audience[0]", ["ä"]],
    ["audience[0]", ["a".repeat(256)]],
    ["audience", Array.from({ length: 17 }, (_, index) => `${index}`)],
  ];

  test.each(table(AUDIENCES))("cannot have an invalid %s", async (field, audience) => {
    const { secret } = await issue(rest);
    expectRefused(await deriveAt({ credential: secret, algorithm, audience }), invalid(field));
  });

  test("with the longest audience fits", async () => {
    const { secret } = await issue(rest);
    const audience = Array.from({ length: 16 }, (_, index) => `${index}`.padEnd(255, "x"));
    const { token } = await derive(rest, secret, { algorithm, audience });
    expect(await batchOf(token, audience)).toEqual(audience.map(() => undefined));
  });

  test("from a mistyped secret is 401 with the reason, and so is one from a token of a revoked key", async () => {
    const { secret, keyId } = await issue(rest);
    const { token } = await derive(rest, secret, { algorithm });
    await revoke(rest, keyId);
    expectRefused(await deriveAt({ credential: `${secret}x`, algorithm }), badCredential("INVALID_FORMAT"));
    expectRefused(await deriveAt({ credential: token, algorithm }), badCredential("REVOKED"));
  });
});

describe("a request with", () => {
  const CASES: readonly (readonly [what: string, fields: Json, field: string])[] = [
    ["no algorithm", { algorithm: undefined }, "algorithm"],
    ["the algorithm UNSPECIFIED", { algorithm: "TOKEN_ALGORITHM_UNSPECIFIED" }, "algorithm"],
    ["an unknown algorithm", { algorithm: "TOKEN_ALGORITHM_PASETO" }, "algorithm"],
    ["an algorithm without its prefix", { algorithm: "JWT" }, "algorithm"],
    ["an unknown algorithm number", { algorithm: 3 }, "algorithm"],
    ["a ttl under 1 s", { ttl: "0s" }, "ttl"],
    ["a ttl over 10 y", { ttl: "11y" }, "ttl"],
    ["a malformed ttl", { ttl: "forever" }, "ttl"],
    ["a scope with a space", { scopes: ["a b"] }, "scopes[0]"],
    ["101 scopes", { scopes: Array.from({ length: 101 }, (_, i) => `s${i}`) }, "scopes"],
    ["claims in a list", { custom_claims: [] }, "custom_claims"],
    ["claims in a string", { custom_claims: "tier=gold" }, "custom_claims"],
    ["a misspelt field", { scope: ["a"] }, "scope"],
  ];

  test.each(table(CASES))("%s is 400", async (_, fields, field) => {
    const { secret } = await issue(rest, { scopes: ["a"] });
    expectRefused(await deriveAt({ credential: secret, algorithm: JWT, ...fields }), invalid(field));
  });
});

describe("claims with a number that JSON cannot represent are refused by name", () => {
  const path = rpcPath(ApiKeysService.method.deriveToken);
  const refused = { code: "invalid_argument", reason: "INVALID_ARGUMENT" };

  const TEXTS = [
    ['{"a":1e400}', 'custom_claims["a"]'],
    ['{"a":[0,{"b":-1e400}]}', 'custom_claims["a"][1]["b"]'],
  ] as const;

  test.each(table(TEXTS))("as JSON: %s", async (claims, field) => {
    const { secret } = await issue(rest);
    const body = `{"credential":"${secret}","algorithm":"${JWT}","custom_claims":${claims}}`;
    const type = { "content-type": "application/json" };
    expectRefused(await send(`${suite.server.url}${paths.keys}:derive`, "POST", body, type), invalid(field));
    expect(readConnectError(await send(suite.server.url + path, "POST", body, type))).toEqual({
      ...refused,
      fields: [field],
    });
  });

  test.each([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN])("as protobuf: %d", async (number) => {
    const { secret: credential } = await issue(rest);
    const customClaims = { a: { b: number } };
    for (const algorithm of [TokenAlgorithm.JWT, TokenAlgorithm.MACAROON]) {
      const message = create(DeriveTokenRequestSchema, { credential, algorithm, customClaims });
      const bytes = Buffer.from(toBinary(DeriveTokenRequestSchema, message));
      const fields = ['custom_claims["a"]["b"]'];
      const type = { "content-type": "application/proto" };
      expect(readConnectError(await send(suite.server.url + path, "POST", bytes, type))).toEqual({
        ...refused,
        fields,
      });
      const grpc = await callGrpc(suite.server.url, path, frame(bytes));
      expect(grpc).toMatchObject({ status: Code.InvalidArgument, reason: "INVALID_ARGUMENT", fields });
    }
  });
});

describe("the JWT", () => {
  test("is EdDSA by a published key, and has the standard claims and the caller's own", async () => {
    const { keyId, secret } = await issue(rest, { actor_id: "user_1", scopes: ["a", "b"] });
    const token = await derive(rest, secret, { algorithm: JWT, custom_claims: { tier: "gold" } });
    const { payload, header } = await readJwt(token.token);
    expect(header).toMatchObject({ alg: "EdDSA", kid: expect.stringMatching(/./) });
    expect(payload).toEqual({
      iss: "keyhold",
      sub: "user_1",
      jti: token.token_id,
      iat: expect.any(Number),
      exp: Date.parse(token.expire_time) / 1000,
      scope: "a b",
      key_id: keyId,
      tier: "gold",
      secret_version: 1,
    });
  });

  test("derived from a token names it", async () => {
    const { secret } = await issue(rest);
    const parent = await derive(rest, secret);
    expect((await readJwt((await derive(rest, parent.token)).token)).payload.parent_id).toBe(parent.token_id);
  });
});

describe("the macaroon", () => {
  const tokenOf = async (fields: Json = {}) => {
    const { secret } = await issue(rest, { scopes: ["a", "b"] });
    return (await derive(rest, secret, { algorithm: MACAROON, custom_claims: { tier: "gold" }, ...fields })).token;
  };

  const FUTURE = "2999-01-01T00:00:00Z";
  const refused = (code: string) => ({ is_valid: false, error_code: `VERIFICATION_ERROR_${code}` });

  const CAVEATS: readonly (readonly [caveat: string, verdict: Json])[] = [
    ["scope = a", { is_valid: true, scopes: ["a"] }],
    ["scope = b c", { is_valid: true, scopes: ["b"] }],
    ["scope = c", { is_valid: true, scopes: [] }],
    [`time < ${FUTURE}`, { is_valid: true, scopes: ["a", "b"] }],
    ["time < 2020-01-01T00:00:00Z", refused("EXPIRED")],
    ['claim tier = "gold"', { is_valid: true }],
    ['claim tier = "silver"', refused("SIGNATURE_INVALID")],
    ['claim region = "eu"', refused("SIGNATURE_INVALID")],
    ["audience = orders", refused("AUDIENCE_MISMATCH")],
    ["audience = ", refused("SIGNATURE_INVALID")],
    ["ip = 127.0.0.1", refused("SIGNATURE_INVALID")],
  ];

  test.each(table(CAVEATS))("with the holder's caveat %s is %j", async (caveat, verdict) => {
    expect(await verify(rest, withCaveats(await tokenOf(), [caveat]))).toMatchObject(verdict);
  });

  test("that its holder has narrowed derives no wider tokens", async () => {
    const end = new Date(Math.floor(Date.now() / 1000) * 1000 + 600_000).toISOString();
    const wide = await tokenOf({ audience: ["orders", "billing", "stock"] });
    const narrow = withCaveats(wide, ["scope = a", "audience = orders billing", `time < ${end}`]);
    const child = await derive(rest, narrow, { ttl: "1h" });
    expect(child).toMatchObject({ scopes: ["a"], audience: ["orders", "billing"] });
    expect(Date.parse(child.expire_time)).toBeLessThanOrEqual(Date.parse(end));
    const wider = await deriveAt({ credential: narrow, algorithm: JWT, scopes: ["b"] });
    expect(wider.body.error).toMatchObject({ code: 403 });
    const elsewhere = await deriveAt({ credential: narrow, algorithm: JWT, audience: ["stock"] });
    expect(elsewhere.body.error).toMatchObject({ code: 403 });
  });
});
