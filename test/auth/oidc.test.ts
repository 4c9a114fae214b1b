import { createHash } from "node:crypto";
import { generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { derive, expectRefused, importKey, table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { expectUnauthenticated, lacking, useGuardedService } from "../support/guarded.ts";
import { type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { type Answer, issue, paths, verify } from "../support/rest.ts";

let oidc: OidcIssuer;
beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());

const suite = useGuardedService();

/** Restarts the service with this authentication. */
function startWith(auth: string, more: Record<string, string> = {}): Promise<void> {
  const { issuer, audience } = oidc;
  const environment = { KEYHOLD_AUTH: auth, KEYHOLD_OIDC_ISSUER: issuer, KEYHOLD_OIDC_AUDIENCE: audience };
  return suite.server.restart({ ...environment, ...more });
}

const list = (credential: string | null): Promise<Answer> => suite.as(credential)("GET", paths.issued);
const create = (credential: string | null, scopes: readonly string[] = []): Promise<Answer> =>
  suite.as(credential)("POST", paths.issued, { name: "n", actor_id: "a", scopes, ttl: "10s" });

/** Claims that the service accepts. */
function claims(change: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  const good = { iss: oidc.issuer, aud: oidc.audience, sub: "user", iat: now, exp: now + 60 };
  return { ...good, scope: "keyhold:keys.read", ...change };
}

describe("KEYHOLD_AUTH=oidc", () => {
  beforeAll(() => startWith("oidc"));

  test("accepts an access token of the issuer, with its scopes", async () => {
    const token = await oidc.token(["keyhold:keys.read", "openid", "unheard-of"]);
    expect((await list(token)).status).toBe(200);
    expectRefused(await create(token), lacking("keyhold:keys.issue"));
  });

  test("allows every call with keyhold:admin", async () => {
    const token = await oidc.token(["keyhold:admin"]);
    const { status, body } = await create(token, ["keyhold:admin"]);
    expect(status).toBe(200);
    expect(body.issued_api_key.created_by).toBe("oidc:operator");
  });

  test("refuses to grant a Keyhold scope that the token lacks", async () => {
    const token = await oidc.token(["keyhold:keys.write"]);
    expect((await create(token, ["keyhold:keys.write"])).status).toBe(200);
    expectRefused(await create(token, ["keyhold:verify"]), lacking("keyhold:verify"));
  });

  test("refuses an admin token that outlives the caller", async () => {
    const { exp } = claims();
    const caller = suite.as(await oidc.sign(claims({ scope: "keyhold:admin", exp })));
    const metadata = { scope: "keyhold:verify", expire_time: new Date((exp ?? 0) * 1000).toISOString() };
    const request = { name: "n", actor_id: "a", scopes: ["keyhold:verify"] };
    const lasting = await caller("POST", paths.issued, request);
    expectRefused(lasting, { ...lacking("keyhold:verify"), metadata });
    expect((await caller("POST", paths.issued, { ...request, ttl: "30s" })).status).toBe(200);
  });

  test("refuses a key known by a hash that outlives the caller once it is adopted", async () => {
    const caller = suite.as(await oidc.sign(claims({ scope: "keyhold:admin" })));
    const value = createHash("sha256").update("a raw key").digest("hex");
    const request = {
      ...{ name: "n", actor_id: "a", adopt_before_time: new Date(Date.now() + 30_000).toISOString() },
      raw_key_hash: { algorithm: "HASH_ALGORITHM_SHA256", value, encoding: "TEXT_ENCODING_HEX" },
    };
    const granting = await caller("POST", paths.imported, { ...request, scopes: ["keyhold:verify"] });
    expectRefused(granting, { ...lacking("keyhold:verify"), metadata: granting.body.error.details[0].metadata });
    expect(granting.body.error.message).toContain("must expire no later than the credential of the caller");
    expect((await caller("POST", paths.imported, request)).status).toBe(200);
  });

  test("logs the caller, and no token", async () => {
    const token = await oidc.token(["keyhold:keys.read"]);
    await list(token);
    expect(suite.server.log()).toContain('"caller":"oidc:operator"');
    expect(suite.server.log()).not.toContain(token.split(".")[2]);
  });

  // Every other claim: `test/token/oidc/verifier.test.ts`.
  const BAD: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
    ["for another audience", () => oidc.sign(claims({ aud: "https://other.test" })), /claim aud/],
    ["signed with another key under the issuer's kid", () => foreign(), /not valid/],
    ["that is malformed", async () => "no-token", /not valid/],
  ];
  test.each(table(BAD))("refuses a token %s", async (_, token, message) => {
    expectUnauthenticated(await list(await token()), message);
  });

  test("refuses credentials of other authentication methods", async () => {
    const { token } = await derive(suite.as(await oidc.token(["keyhold:admin"])), suite.token("keyhold:admin"));
    for (const credential of [suite.token("keyhold:admin"), token])
      expectUnauthenticated(await list(credential), /^the access token is not valid/);
    expectUnauthenticated(await list(null), /the form Bearer/);
  });
});

describe("KEYHOLD_OIDC_SCOPE_CLAIM", () => {
  beforeAll(() => startWith("oidc", { KEYHOLD_OIDC_SCOPE_CLAIM: "realm_access.roles" }));

  test("names the claim with the scopes", async () => {
    expect((await list(await oidc.token(["keyhold:keys.read"]))).status).toBe(200);
    const elsewhere = claims({ scope: "keyhold:admin", realm_access: { roles: ["keyhold:verify"] } });
    expectRefused(await list(await oidc.sign(elsewhere)), lacking("keyhold:keys.read"));
    expectRefused(await list(await oidc.sign(claims({ scope: "keyhold:admin" }))), lacking("keyhold:keys.read"));
  });
});

describe("KEYHOLD_OIDC_ACTORS_CLAIM", () => {
  beforeAll(() => startWith("oidc", { KEYHOLD_OIDC_ACTORS_CLAIM: "tenants" }));

  test("names the claim with the actors to whose keys a caller is restricted", async () => {
    const actors = async (tenants: unknown) => {
      const token = await oidc.sign(claims({ scope: "keyhold:keys.read keyhold:keys.issue", tenants }));
      const { body } = await list(token);
      const seen = new Set(body.issued_api_keys.map((key: Record<string, string>) => key.actor_id));
      return { seen: [...seen].sort(), mayCreate: (await create(token)).status === 200 };
    };
    const every = await actors("*");
    expect(every).toMatchObject({ seen: expect.arrayContaining(["a", "actor_1"]), mayCreate: true });
    expect(await actors("a")).toEqual({ seen: ["a"], mayCreate: true });
    expect(await actors(["a", "actor_1"])).toEqual({ seen: ["a", "actor_1"], mayCreate: true });
    expect(await actors(["actor_1", "b\0"])).toEqual({ seen: ["actor_1"], mayCreate: false });
    expect(await actors(["b", "*"])).toEqual(every);
    for (const none of [undefined, [], "", 7, ["a", 7], { a: true }, null, "b"])
      expect(await actors(none)).toEqual({ seen: [], mayCreate: false });
  });

  test("restricts verification and bulk changes to their keys", async () => {
    const of = async (tenants: unknown) => suite.as(await oidc.sign(claims({ scope: "keyhold:admin", tenants })));
    const [caller, any] = [await of("mine"), await of("*")];
    const [mine, foreign] = [await issue(any, { actor_id: "mine" }), await issue(any, { actor_id: "foreign" })];
    expect(await verify(caller, mine.secret)).toMatchObject({ is_valid: true });
    expect(await verify(caller, foreign.secret)).toMatchObject({ error_code: "VERIFICATION_ERROR_NOT_FOUND" });
    const filter = `key_id="${mine.keyId}" OR key_id="${foreign.keyId}"`;
    const { body } = await caller("POST", `${paths.keys}:bulkRevoke`, { filter });
    expect(body).toMatchObject({ matched_count: 1, changed_count: 1, done: true });
    expect(await verify(any, foreign.secret)).toMatchObject({ is_valid: true });
  });
});

describe("KEYHOLD_AUTH=admin-token,oidc", () => {
  beforeAll(() => startWith("admin-token,oidc"));

  test("accepts either, and nothing else", async () => {
    expect((await list(suite.token("keyhold:keys.read"))).status).toBe(200);
    expect((await list(await oidc.token(["keyhold:keys.read"]))).status).toBe(200);
    const { rawKey } = await importKey(suite.rest, { scopes: ["keyhold:admin"] });
    const { token } = await derive(suite.rest, suite.token("keyhold:admin"));
    for (const bad of [rawKey, token]) expectUnauthenticated(await list(bad), /not valid/);
    expectUnauthenticated(await list(null), /the form Bearer/);
  });

  test("does not query the issuer for an invalid admin token", async () => {
    const { secret, keyId } = await issue(suite.rest, { scopes: ["keyhold:keys.read"] });
    await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
    expectUnauthenticated(await list(secret), /^the admin token is not valid/);
  });
});

describe("KEYHOLD_AUTH=none,admin-token,oidc", () => {
  beforeAll(() => startWith("none,admin-token,oidc"));

  test("allows everything without a credential", async () => {
    expect((await create(null, ["keyhold:admin"])).status).toBe(200);
    expect(suite.server.log()).toContain("everyone who can reach the port has full access");
  });

  test("authorizes callers with a credential by that credential", async () => {
    expectRefused(await create(suite.token("keyhold:keys.read")), lacking("keyhold:keys.issue"));
    expectRefused(await create(await oidc.token(["keyhold:keys.read"])), lacking("keyhold:keys.issue"));
    expectUnauthenticated(await create("no-token"), /not valid/);
  });
});

describe("while the issuer is unreachable", () => {
  beforeAll(async () => startWith("admin-token,oidc", { KEYHOLD_OIDC_ISSUER: `http://127.0.0.1:${await freePort()}` }));

  test("its tokens are 503 UNAVAILABLE with Retry-After", async () => {
    const answer = await list(await oidc.token(["keyhold:keys.read"]));
    expectRefused(answer, { code: 503, status: "UNAVAILABLE", reason: "AUTHORITY_UNAVAILABLE" });
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(answer.headers.get("www-authenticate")).toBeNull();
  });

  test("admin tokens work, and malformed tokens are rejected as usual", async () => {
    expect((await list(suite.token("keyhold:keys.read"))).status).toBe(200);
    expectUnauthenticated(await list("no-token"), /not valid/);
  });
});

/** Signed by another issuer. */
async function foreign(): Promise<string> {
  const { privateKey } = await generateKeyPair("ES256");
  return new SignJWT(claims()).setProtectedHeader({ alg: "ES256", kid: "key-1", typ: "at+jwt" }).sign(privateKey);
}
