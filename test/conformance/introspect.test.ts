import { describe, expect, test } from "vitest";
import {
  derive,
  endGrace,
  expire,
  importKey,
  newRawKey,
  revoke,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { INTROSPECT, introspect } from "../support/introspect.ts";
import { type Answer, issue, type Json, paths } from "../support/rest.ts";
import { startTestServer } from "../support/server.ts";

const ISSUER = "https://keys.example";
const suite = useService({ KEYHOLD_ISSUER: ISSUER });
const { rest } = suite;

const seconds = (time: string) => Math.floor(Date.parse(time) / 1000);
const ask = (token: string, more: Record<string, string> = {}) => introspect(suite.server, { token, ...more });

function expectActive({ status, headers, body, text }: Answer, members: Record<string, unknown>): void {
  expect({ status, type: headers.get("content-type") }).toEqual({
    status: 200,
    type: "application/json; charset=utf-8",
  });
  expect([headers.get("cache-control"), text.startsWith('{"active":true,')]).toEqual(["no-store", true]);
  expect(body).toEqual({ active: true, token_type: "Bearer", iss: ISSUER, ...members });
}

function expectInactive({ status, headers, text }: Answer): void {
  expect([status, text, headers.get("cache-control")]).toEqual([200, '{"active":false}', "no-store"]);
}

describe("an active credential is described", () => {
  test("that is a key without scopes and expiry, which are absent", async () => {
    const { keyId, secret, record } = await issue(rest, { actor_id: "user_1" });
    const iat = seconds(record.create_time);
    expectActive(await ask(secret), { client_id: keyId, jti: keyId, sub: "user_1", iat });
  });

  test("that is an imported key with scopes and an expiry", async () => {
    const { keyId, rawKey, record } = await importKey(rest, { scopes: ["read", "write"], ttl: "1h" });
    const times = { iat: seconds(record.create_time), exp: seconds(record.expire_time) };
    expectActive(await ask(rawKey), { client_id: keyId, jti: keyId, sub: "actor_1", scope: "read write", ...times });
  });

  test.each(["JWT", "MACAROON"])("that is a token: %s, with its own id, times, scopes and audience", async (name) => {
    const { keyId, secret } = await issue(rest, { scopes: ["a", "b"], metadata: { k: "v" } });
    const algorithm = `TOKEN_ALGORITHM_${name}`;
    const earliest = Math.floor(Date.now() / 1000);
    const token = await derive(rest, secret, { algorithm, scopes: ["b"], audience: ["billing"], ttl: "60s" });
    const answer = await ask(token.token);
    const exp = seconds(token.expire_time);
    const members = { client_id: keyId, jti: token.token_id, sub: "actor_1", scope: "b", aud: ["billing"], exp };
    expectActive(answer, { ...members, iat: exp - 60 });
    expect(answer.body.iat).toBeGreaterThanOrEqual(earliest);
    if (name !== "JWT") return;
    const claims = JSON.parse(Buffer.from(token.token.split(".")[1], "base64url").toString());
    const { iat, exp: end, iss, sub, jti, aud, scope } = claims;
    expect({ iat, exp: end, iss, sub, jti, aud, scope }).toEqual(
      Object.fromEntries(["iat", "exp", "iss", "sub", "jti", "aud", "scope"].map((one) => [one, answer.body[one]])),
    );
  });

  test("that is a previous secret in its grace period, which ends with it", async () => {
    const { keyId, secret } = await issue(rest);
    await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" });
    expect((await ask(secret)).body).toMatchObject({ active: true, exp: expect.any(Number) });
  });

  test("and its use is recorded", async () => {
    const { keyId, secret } = await issue(rest);
    await ask(secret);
    await suite.server.restart();
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`)).last_used_time).toBeDefined();
  });
});

describe("an inactive credential is not described, which is", () => {
  const revoked = async () => {
    const { keyId, secret } = await issue(rest);
    const token = (await derive(rest, secret)).token;
    await revoke(rest, keyId);
    return { secret, token };
  };
  const RESTRICTED = { ip_restriction: { allowed_cidrs: ["203.0.113.0/24"] } };
  const rotated = async () => {
    const { keyId, secret } = await issue(rest);
    await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" });
    await endGrace(suite, keyId);
    return secret;
  };
  type Case = readonly [what: string, credential: () => Promise<string>, conditions?: Record<string, string>];
  const CASES = table<Case>([
    ["unknown", async () => newRawKey()],
    ["an unknown issued secret", async () => (await issue(rest)).secret.replace(/.{6}$/, "aaaaaa")],
    ["malformed", async () => "\u0000\ud83d\ude00 no token"],
    ["longer than a credential", async () => "a".repeat(8193)],
    ["revoked", async () => (await revoked()).secret],
    ["derived from a revoked key", async () => (await revoked()).token],
    [
      "expired",
      async () => {
        const { keyId, secret } = await issue(rest);
        await expire(suite, keyId);
        return secret;
      },
    ],
    [
      "disabled",
      async () => {
        const { keyId, secret } = await issue(rest);
        await rest("POST", `${paths.keys}/${keyId}:disable`, {});
        return secret;
      },
    ],
    ["rotated away", rotated],
    ["restricted to addresses, and none is stated", async () => (await issue(rest, RESTRICTED)).secret],
    ["used from elsewhere", async () => (await issue(rest, RESTRICTED)).secret, { client_ip: "198.51.100.1" }],
    [
      "of another audience",
      async () => (await derive(rest, (await issue(rest)).secret, { audience: ["other"] })).token,
      { audience: "billing" },
    ],
    ["without a required scope", async () => (await issue(rest, { scopes: ["a"] })).secret, { required_scopes: "a b" }],
    [
      "a token with a changed signature",
      async () => `${(await derive(rest, (await issue(rest)).secret)).token.slice(0, -9)}AAAAAAAAA`,
    ],
  ]);

  test.for(CASES)("%s", async ([, credential, more = {}]) => {
    const token = await credential();
    expectInactive(await ask(token, more));
    // From the cache too.
    expectInactive(await ask(token, more));
  });
});

test("a credential is active under the conditions that it meets", async () => {
  const { secret } = await issue(rest, {
    scopes: ["a", "b"],
    ip_restriction: { allowed_cidrs: ["203.0.113.0/24"] },
  });
  const { token } = await derive(rest, (await issue(rest)).secret, { audience: ["billing"] });
  const conditions = { client_ip: "203.0.113.9", required_scopes: "a b", audience: "billing" };
  expect((await ask(secret, conditions)).body).toMatchObject({ active: true, scope: "a b" });
  expect((await ask(token, { audience: "billing" })).body).toMatchObject({ active: true, aud: ["billing"] });
});

describe("a revocation takes effect in the next introspection", () => {
  test("of every node", async () => {
    const other = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ISSUER: ISSUER });
    try {
      for (let round = 0; round < 20; round++) {
        const { keyId, secret } = await issue(rest);
        const { token } = await derive(rest, secret);
        const askAll = () =>
          Promise.all(
            [suite.server, other].flatMap((node) => [secret, token].map((one) => introspect(node, { token: one }))),
          );
        for (const { body } of await askAll()) expect(body.active).toBe(true);
        await revoke(rest, keyId);
        for (const answer of await askAll()) expectInactive(answer);
      }
    } finally {
      await other.close();
    }
  });
});

describe("the form", () => {
  const known = async () => (await issue(rest)).secret;
  const TYPE = "application/x-www-form-urlencoded";

  test.each([TYPE, `${TYPE};charset=UTF-8`, `${TYPE}; charset="utf-8"`, TYPE.toUpperCase()])(
    "has the type %s",
    async (type) => {
      const token = await known();
      expect((await introspect(suite.server, { token }, { "content-type": type })).body.active).toBe(true);
    },
  );

  test.each(["application/json", "text/plain", "multipart/form-data; boundary=a", `${TYPE}; charset=iso-8859-1`])(
    "has not the type %s",
    async (type) => {
      const { status, body, headers } = await introspect(
        suite.server,
        { token: await known() },
        { "content-type": type },
      );
      expect([status, body.error, headers.get("cache-control")]).toEqual([415, "invalid_request", "no-store"]);
    },
  );

  test("must have a type", async () => {
    const body = Buffer.from(`token=${await known()}`);
    const response = await fetch(suite.server.url + INTROSPECT, { method: "POST", body });
    expect([response.status, ((await response.json()) as Json).error]).toEqual([415, "invalid_request"]);
  });

  test("may have parameters that are unknown, and a hint of any kind", async () => {
    const token = await known();
    const hints = ["access_token", "refresh_token", "none"].map((token_type_hint) => ({ token_type_hint }));
    const forms: readonly Record<string, string>[] = [...hints, { client_id: "x", a: "b" }];
    for (const form of forms) expect((await ask(token, form)).body.active).toBe(true);
    const text = `&a=&client_ip=&audience=&required_scopes=&&%74oken=${token}&`;
    expect((await introspect(suite.server, text)).body.active).toBe(true);
  });

  test("decodes `+` and percent-encoding", async () => {
    const raw_key = `a+b%20c=d&e/${newRawKey()}`;
    succeeded(await rest("POST", paths.imported, { raw_key, name: "n", actor_id: "a" }));
    expect((await ask(raw_key)).body.active).toBe(true);
  });

  const REFUSED = table([
    ["no token", "token_type_hint=access_token", "token: "],
    ["an empty token", "token=", "token: "],
    ["nothing", "", "token: "],
    ["two tokens", "token=a&token=b", "token: "],
    ["the same token twice", "token=a&token=a", "token: "],
    ["another parameter twice", "token=a&x=1&x=2", "x: "],
    ["an empty parameter twice", "token=a&x=&x=", "x: "],
    ["a malformed percent-encoding", "token=%zz", "body: "],
    ["a percent-encoding that is not UTF-8", "token=%ff", "body: "],
    ["a secret of the client", "token=a&client_secret=b", "client_secret: "],
    ["scopes with two spaces", "token=a&required_scopes=a++b", "required_scopes"],
    ["an audience with a space", "token=a&audience=a+b", "audience: "],
    ["a long address", `token=a&client_ip=${"1".repeat(256)}`, "client_ip: "],
  ]);

  test.each(REFUSED)("has not %s", async (_, form, description) => {
    const { status, body, headers } = await introspect(suite.server, form);
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      ...[400, "application/json; charset=utf-8", "no-store"],
    ]);
    expect(body).toEqual({ error: "invalid_request", error_description: expect.stringContaining(description) });
    expect(body.error_description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  });

  test("is at most 16 KiB", async () => {
    const token = await known();
    const padding = (bytes: number) => `token=${token}&a=${"b".repeat(bytes - token.length - 9)}`;
    expect((await introspect(suite.server, padding(16_384))).body.active).toBe(true);
    const { status, body } = await introspect(suite.server, padding(16_385));
    expect([status, body.error]).toEqual([413, "invalid_request"]);
  });

  test("is not compressed, and the token is not in the query", async () => {
    const token = await known();
    const compressed = await introspect(suite.server, { token }, { "content-encoding": "gzip" });
    expect([compressed.status, compressed.body.error]).toEqual([415, "invalid_request"]);
    const headers = { "content-type": TYPE };
    const response = await fetch(`${suite.server.url}${INTROSPECT}?token=${token}`, { method: "POST", headers });
    expect([response.status, ((await response.json()) as Json).error]).toEqual([400, "invalid_request"]);
  });

  test.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("is not sent with %s", async (method) => {
    const response = await fetch(`${suite.server.url}${INTROSPECT}?token=${await known()}`, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
    const text = await response.text();
    expect(method === "HEAD" ? "invalid_request" : JSON.parse(text).error).toBe("invalid_request");
  });
});

test("no-cache and no-store apply as to every verification", async () => {
  const { secret, keyId } = await issue(rest);
  await ask(secret);
  await suite.sql.begin(async (sql) => {
    await sql`ALTER TABLE api_keys DISABLE TRIGGER key_changed`;
    await sql`UPDATE api_keys SET actor_id = 'someone else' WHERE key_id = ${keyId}`;
    await sql`ALTER TABLE api_keys ENABLE TRIGGER key_changed`;
  });
  const subject = async (cacheControl: string) =>
    (await introspect(suite.server, { token: secret }, { "cache-control": cacheControl })).body.sub;
  expect(await subject("max-age=0")).toBe("actor_1");
  expect(await subject("no-store")).toBe("someone else");
});

test("a credential whose limit is exceeded is neither active nor inactive: the call fails with 429", async () => {
  const { secret } = await issue(rest, { rate_limits: [{ name: "requests", quota: 1, window: "24h" }] });
  expect((await ask(secret)).body).toMatchObject({ active: true });
  const { status, headers, body } = await ask(secret);
  expect([status, body.error]).toEqual([429, "temporarily_unavailable"]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(80_000);
});
