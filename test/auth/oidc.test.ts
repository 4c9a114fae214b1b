import { createServer } from "node:net";
import { generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { derive, type Expected, expectRefused, importKey, table } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { type Answer, issue, paths } from "../support/rest.ts";

let oidc: OidcIssuer;
beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());

const suite = useGuardedService();

/** Starts the service anew, with this choice of who may call. */
function startWith(auth: string, more: Record<string, string> = {}): Promise<void> {
  const { issuer, audience } = oidc;
  const environment = { KEYHOLD_AUTH: auth, KEYHOLD_OIDC_ISSUER: issuer, KEYHOLD_OIDC_AUDIENCE: audience };
  return suite.server.restart({ ...environment, ...more });
}

const list = (credential: string | null): Promise<Answer> => suite.as(credential)("GET", paths.issued);
const create = (credential: string | null, scopes: readonly string[] = []): Promise<Answer> =>
  suite.as(credential)("POST", paths.issued, { name: "n", actor_id: "a", scopes });

/** Claims that the service takes. */
function claims(change: JWTPayload = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000);
  const good = { iss: oidc.issuer, aud: oidc.audience, sub: "user", iat: now, exp: now + 60 };
  return { ...good, scope: "keyhold:keys.read", ...change };
}

const UNAUTHENTICATED: Expected = { code: 401, status: "UNAUTHENTICATED", reason: "CALLER_UNAUTHENTICATED" };

function expectUnauthenticated(answer: Answer, message: RegExp): void {
  expectRefused(answer, UNAUTHENTICATED);
  expect(answer.body.error.message).toMatch(message);
  expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer realm="keyhold"/);
}

function lacking(scope: string): Expected {
  return { code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED", metadata: { scope } };
}

describe("KEYHOLD_AUTH=oidc", () => {
  beforeAll(() => startWith("oidc"));

  test("lets in an access token of the issuer, to what its scopes allow", async () => {
    const token = await oidc.token(["keyhold:keys.read", "openid", "unheard-of"]);
    expect((await list(token)).status).toBe(200);
    expectRefused(await create(token), lacking("keyhold:keys.write"));
  });

  test("lets keyhold:admin do everything", async () => {
    const token = await oidc.token(["keyhold:admin"]);
    expect((await create(token, ["keyhold:admin"])).status).toBe(200);
  });

  test("lets nobody give away a scope over Keyhold that the token lacks", async () => {
    const token = await oidc.token(["keyhold:keys.write"]);
    expect((await create(token, ["keyhold:keys.write"])).status).toBe(200);
    expectRefused(await create(token, ["keyhold:verify"]), lacking("keyhold:verify"));
  });

  test("names the caller in the log, and holds no token there", async () => {
    const token = await oidc.token(["keyhold:keys.read"]);
    await list(token);
    expect(suite.server.log()).toContain('"caller":"oidc:operator"');
    expect(suite.server.log()).not.toContain(token.split(".")[2]);
  });

  const BAD: readonly (readonly [string, () => Promise<string>, RegExp])[] = [
    ["for another audience", () => oidc.sign(claims({ aud: "https://other.test" })), /claim aud/],
    ["for no audience", () => oidc.sign(claims({ aud: undefined })), /claim aud/],
    ["of another issuer", () => oidc.sign(claims({ iss: "https://other.test" })), /claim iss/],
    ["of the issuer with a slash more", () => oidc.sign(claims({ iss: `${oidc.issuer}/` })), /claim iss/],
    ["that has expired", () => oidc.sign(claims({ exp: Math.floor(Date.now() / 1000) - 60 })), /has expired/],
    ["that never expires", () => oidc.sign(claims({ exp: undefined })), /claim exp/],
    ["that is not good yet", () => oidc.sign(claims({ nbf: Math.floor(Date.now() / 1000) + 60 })), /claim nbf/],
    ["of nobody", () => oidc.sign(claims({ sub: undefined })), /claim sub/],
    ["signed with a key that the issuer does not publish", () => foreign("key-of-nobody"), /not valid/],
    ["signed with another key under the issuer's kid", () => foreign("key-1"), /not valid/],
    ["signed with nothing", async () => unsigned(), /not valid/],
    ["that is none at all", async () => "no-token", /not valid/],
  ];
  test.each(table(BAD))("refuses a token %s", async (_, token, message) => {
    expectUnauthenticated(await list(await token()), message);
  });

  test("refuses what another way of authentication would take", async () => {
    const { token } = await derive(suite.as(await oidc.token(["keyhold:admin"])), suite.token("keyhold:admin"));
    for (const credential of [suite.token("keyhold:admin"), token])
      expectUnauthenticated(await list(credential), /^the access token is not valid/);
    expectUnauthenticated(await list(null), /Authorization: Bearer/);
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

describe("KEYHOLD_AUTH=admin-token,oidc", () => {
  beforeAll(() => startWith("admin-token,oidc"));

  test("takes either, and nothing else", async () => {
    expect((await list(suite.token("keyhold:keys.read"))).status).toBe(200);
    expect((await list(await oidc.token(["keyhold:keys.read"]))).status).toBe(200);
    const { rawKey } = await importKey(suite.rest, { scopes: ["keyhold:admin"] });
    const { token } = await derive(suite.rest, suite.token("keyhold:admin"));
    for (const bad of [rawKey, token]) expectUnauthenticated(await list(bad), /not valid/);
    expectUnauthenticated(await list(null), /Authorization: Bearer/);
  });

  test("does not ask the issuer about an admin token that is not valid", async () => {
    const { secret, keyId } = await issue(suite.rest, { scopes: ["keyhold:keys.read"] });
    await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
    expectUnauthenticated(await list(secret), /^the admin token is not valid/);
  });
});

describe("KEYHOLD_AUTH=none,admin-token,oidc", () => {
  beforeAll(() => startWith("none,admin-token,oidc"));

  test("lets everyone do everything who shows no credential", async () => {
    expect((await create(null, ["keyhold:admin"])).status).toBe(200);
    expect(suite.server.log()).toContain("KEYHOLD_AUTH has none: everyone who reaches this address");
  });

  test("holds to the credential those who show one", async () => {
    expectRefused(await create(suite.token("keyhold:keys.read")), lacking("keyhold:keys.write"));
    expectRefused(await create(await oidc.token(["keyhold:keys.read"])), lacking("keyhold:keys.write"));
    expectUnauthenticated(await create("no-token"), /not valid/);
  });
});

describe("while the issuer cannot be reached", () => {
  beforeAll(async () => startWith("admin-token,oidc", { KEYHOLD_OIDC_ISSUER: await addressOfNobody() }));

  test("its tokens are answered 503 UNAVAILABLE, with Retry-After", async () => {
    const answer = await list(await oidc.token(["keyhold:keys.read"]));
    expectRefused(answer, { code: 503, status: "UNAVAILABLE", reason: "AUTHORITY_UNAVAILABLE" });
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(answer.headers.get("www-authenticate")).toBeNull();
  });

  test("admin tokens work, and what is no token at all is refused as ever", async () => {
    expect((await list(suite.token("keyhold:keys.read"))).status).toBe(200);
    expectUnauthenticated(await list("no-token"), /not valid/);
  });
});

/** Signed by someone else. */
async function foreign(kid: string): Promise<string> {
  const { privateKey } = await generateKeyPair("ES256");
  return new SignJWT(claims()).setProtectedHeader({ alg: "ES256", kid, typ: "at+jwt" }).sign(privateKey);
}

function unsigned(): string {
  const parts = [{ alg: "none", typ: "at+jwt" }, claims()];
  return `${parts.map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.`;
}

/** A port that was free a moment ago. */
async function addressOfNobody(): Promise<string> {
  const server = createServer();
  const url = await new Promise<string>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${Object(server.address()).port}`));
  });
  await new Promise((resolve) => server.close(resolve));
  return url;
}
