import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { derive, expectRefused, expire, importKey, revoke, table } from "../support/conformance.ts";
import { expectUnauthenticated, useGuardedService } from "../support/guarded.ts";
import { type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { type Answer, issue, paths } from "../support/rest.ts";

/* `permitted_rpcs` of each scope: `matrix.test.ts`. */

let oidc: OidcIssuer;
beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());

const suite = useGuardedService();
const { rest } = suite;

const whoAmI = (credential: string | null): Promise<Answer> => suite.as(credential)("GET", paths.caller);

const DENIED = { code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED" };

const ALL_RPCS = SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`)).sort();

/** What a caller with `keyhold:derive` may call. */
const DERIVE_RPCS = [
  "keyhold.v2alpha1.ApiKeysService/DeriveToken",
  "keyhold.v2alpha1.CallersService/WhoAmI",
  "keyhold.v2alpha1.DerivedKeysService/GetJwks",
  "keyhold.v2alpha1.SelfServiceService/SelfRevokeApiKey",
];

const newToken = (fields = {}) => issue(rest, { scopes: ["keyhold:derive"], ...fields });

describe("an admin token", () => {
  test("is described with all of its scopes", async () => {
    const scopes = ["read", "keyhold:derive", "write"];
    const { secret, keyId } = await newToken({ scopes });
    const { status, body } = await whoAmI(secret);
    expect(status).toBe(200);
    expect(body).toEqual({
      ...{ subject: keyId, auth_method: "AUTH_METHOD_ADMIN_TOKEN", scopes },
      ...{ actor_restricted: false, restricted_to_actor_ids: [], permitted_rpcs: DERIVE_RPCS },
    });
  });

  test("is described with its expiry and its actors", async () => {
    const restriction = { actor_id: "b", restricted_to_actor_ids: ["a", "b"] };
    const { secret, record } = await newToken({ ttl: "1h", ...restriction });
    expect((await whoAmI(secret)).body).toMatchObject({
      ...{ expire_time: record.expire_time, actor_restricted: true, restricted_to_actor_ids: ["a", "b"] },
      permitted_rpcs: DERIVE_RPCS,
    });
  });

  test.each(table(ADMIN_SCOPES))("suffices with only %s", async (scope) => {
    expect((await whoAmI(suite.token(scope))).body).toMatchObject({ scopes: [scope] });
  });

  test("is described with the current scopes of its key", async () => {
    const { secret, keyId } = await newToken();
    const change = (scopes: string[]) => rest("PATCH", `${paths.issued}/${keyId}?update_mask=scopes`, { scopes });
    await change(["keyhold:admin"]);
    expect((await whoAmI(secret)).body).toMatchObject({ scopes: ["keyhold:admin"], permitted_rpcs: ALL_RPCS });
    await change(["read"]);
    expectRefused(await whoAmI(secret), DENIED);
  });

  test("is rejected when it has expired, is revoked, or is disabled", async () => {
    const [expired, revoked, disabled] = await Promise.all([newToken(), newToken(), newToken()]);
    await expire(suite, expired.keyId);
    await revoke(rest, revoked.keyId);
    await rest("POST", `${paths.keys}/${disabled.keyId}:disable`, {});
    expectUnauthenticated(await whoAmI(expired.secret), /the key has expired$/);
    expectUnauthenticated(await whoAmI(revoked.secret), /the key is revoked$/);
    expectUnauthenticated(await whoAmI(disabled.secret), /the key is disabled$/);
  });
});

describe("other credentials are rejected:", () => {
  test("none", async () => {
    expectUnauthenticated(await whoAmI(null), /the Authorization header is missing/);
  });

  test("the key of a customer, whatever its scopes", async () => {
    for (const scopes of [[], ["read", "keyhold", "KEYHOLD:admin", "keyholdadmin"]])
      expectRefused(await whoAmI((await issue(rest, { scopes })).secret), DENIED);
  });

  test("an imported key, and a token derived from an admin token", async () => {
    const { rawKey } = await importKey(rest, { scopes: ["keyhold:admin"] });
    const { token } = await derive(rest, suite.token("keyhold:admin"));
    for (const credential of [rawKey, token])
      expectUnauthenticated(await whoAmI(credential), /unsupported credential type/);
  });
});

describe("with OIDC, an access token", () => {
  const sign = (claims = {}) => {
    const now = Math.floor(Date.now() / 1000);
    return oidc.sign({ iss: oidc.issuer, aud: oidc.audience, sub: "alice", iat: now, exp: now + 60, ...claims });
  };
  beforeAll(async () => {
    const { issuer, audience } = oidc;
    const environment = { KEYHOLD_OIDC_ISSUER: issuer, KEYHOLD_OIDC_AUDIENCE: audience };
    await suite.server.restart({ KEYHOLD_AUTH: "oidc", KEYHOLD_OIDC_ACTORS_CLAIM: "tenants", ...environment });
  });

  test("is described with its subject and expiry", async () => {
    const exp = Math.floor(Date.now() / 1000) + 77;
    const { body } = await whoAmI(await sign({ scope: "openid keyhold:derive", tenants: "*", exp }));
    expect(body).toEqual({
      ...{ subject: "alice", auth_method: "AUTH_METHOD_OIDC", scopes: ["openid", "keyhold:derive"] },
      ...{ actor_restricted: false, restricted_to_actor_ids: [], permitted_rpcs: DERIVE_RPCS },
      expire_time: expect.toSatisfy((time) => Date.parse(time) === exp * 1000),
    });
  });

  test("is described as restricted to no actor if it names none", async () => {
    const { body } = await whoAmI(await sign({ scope: "keyhold:admin" }));
    expect(body).toMatchObject({ actor_restricted: true, restricted_to_actor_ids: [] });
    expect(body.permitted_rpcs).not.toContain("keyhold.v2alpha1.AuditService/ListAuditEvents");
    expect(body.permitted_rpcs).toContain("keyhold.v2alpha1.ApiKeysService/ListApiKeys");
  });

  test("is rejected without a Keyhold scope", async () => {
    for (const scope of ["", "openid", "keyhold:invented", "keyhold:"])
      expectRefused(await whoAmI(await sign({ scope, tenants: "*" })), DENIED);
  });
});

describe("without authentication", () => {
  beforeAll(() => suite.server.restart({}));

  test("the caller is anonymous, and may call every RPC", async () => {
    for (const credential of [null, "anything"])
      expect((await whoAmI(credential)).body).toEqual({
        ...{ subject: "anonymous", auth_method: "AUTH_METHOD_NONE", scopes: ["keyhold:admin"] },
        ...{ actor_restricted: false, restricted_to_actor_ids: [], permitted_rpcs: ALL_RPCS },
      });
  });
});
