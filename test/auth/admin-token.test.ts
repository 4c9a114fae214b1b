import { describe, expect, test } from "vitest";
import { derive, endGrace, expectRefused, expire, importKey, revoke, table } from "../support/conformance.ts";
import { expectUnauthenticated, lacking, useGuardedService } from "../support/guarded.ts";
import { http1 } from "../support/raw-http.ts";
import { type Answer, issue, paths } from "../support/rest.ts";

const suite = useGuardedService();
const { rest } = suite;

/** A call that requires a Keyhold scope. */
const list = (credential: string | null): Promise<Answer> => suite.as(credential)("GET", paths.issued);

const newToken = (fields = {}) => issue(rest, { scopes: ["keyhold:keys.read"], ...fields });

describe("an admin token", () => {
  test("is valid until it expires", async () => {
    const { secret, keyId } = await newToken({ ttl: "1h" });
    expect((await list(secret)).status).toBe(200);
    await expire(suite, keyId);
    expectUnauthenticated(await list(secret), /^the admin token is not valid: the key has expired$/);
  });

  test("is rejected from the first call after its revocation", async () => {
    const { secret, keyId } = await newToken();
    expect((await list(secret)).status).toBe(200);
    await revoke(rest, keyId);
    expectUnauthenticated(await list(secret), /^the admin token is not valid: the key is revoked$/);
  });

  test("is rejected while it is disabled", async () => {
    const { secret, keyId } = await newToken();
    expect((await list(secret)).status).toBe(200);
    await rest("POST", `${paths.keys}/${keyId}:disable`, {});
    expectUnauthenticated(await list(secret), /^the admin token is not valid: the key is disabled$/);
    await rest("POST", `${paths.keys}/${keyId}:enable`, {});
    expect((await list(secret)).status).toBe(200);
  });

  test("can revoke itself while it is disabled, but not enable itself", async () => {
    const { secret, keyId } = await newToken({ scopes: ["keyhold:admin"] });
    await rest("POST", `${paths.keys}/${keyId}:disable`, {});
    expectUnauthenticated(await suite.as(secret)("POST", `${paths.keys}/${keyId}:enable`, {}), /the key is disabled$/);
    expect((await suite.as(null)("POST", paths.selfRevoke, { credential: secret })).status).toBe(200);
  });

  test("can revoke itself by its own secret, like every key", async () => {
    const { secret } = await newToken();
    expect((await suite.as(null)("POST", paths.selfRevoke, { credential: secret })).status).toBe(200);
    expectUnauthenticated(await list(secret), /revoked/);
  });

  test("is rejected after a rotation, and the new one is valid", async () => {
    const { secret, keyId } = await newToken();
    const { body } = await rest("POST", `${paths.issued}/${keyId}:rotate`, {});
    expectUnauthenticated(await list(secret), /replaced by a rotation/);
    expect((await list(body.secret)).status).toBe(200);
  });

  test("stays valid beside the new one during its grace period", async () => {
    const { secret, keyId } = await newToken();
    const { body } = await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" });
    expect([await list(secret), await list(body.secret)].map(({ status }) => status)).toEqual([200, 200]);
    await endGrace(suite, keyId);
    expectUnauthenticated(await list(secret), /replaced by a rotation/);
    expect((await list(body.secret)).status).toBe(200);
  });

  test("has the current scopes of its key", async () => {
    const { secret, keyId } = await newToken();
    const change = (scopes: string[]) => rest("PATCH", `${paths.issued}/${keyId}?update_mask=scopes`, { scopes });
    await change(["keyhold:verify"]);
    expectRefused(await list(secret), lacking("keyhold:keys.read"));
    await change(["keyhold:admin"]);
    expect((await list(secret)).status).toBe(200);
  });
});

describe("other credentials are rejected:", () => {
  test("an issued key without a Keyhold scope is authenticated, but lacks every permission", async () => {
    const scopes = ["keys.read", "KEYHOLD:admin", "keyhold"];
    const { secret } = await issue(rest, { scopes });
    expectRefused(await list(secret), lacking("keyhold:keys.read"));
  });

  test.each(table(["JWT", "MACAROON"]))("a %s derived from one", async (algorithm) => {
    const fields = { algorithm: `TOKEN_ALGORITHM_${algorithm}`, ttl: "1h" };
    const { token } = await derive(rest, suite.token("keyhold:admin"), fields);
    expectUnauthenticated(await list(token), /unsupported credential type/);
  });

  test("an imported key with any scopes", async () => {
    const { rawKey } = await importKey(rest, { scopes: ["keyhold:admin", "keyhold:keys.read"] });
    expectUnauthenticated(await list(rawKey), /unsupported credential type/);
  });

  test("a secret composed of two others", async () => {
    const [head, tail] = [suite.token("keyhold:admin").slice(0, 40), suite.token("keyhold:verify").slice(40)];
    expectUnauthenticated(await list(head + tail), /malformed secret/);
  });
});

describe("the header Authorization", () => {
  const token = () => suite.token("keyhold:keys.read");
  const send = (...values: string[]) =>
    http1(suite.server.url, {
      path: paths.issued,
      host: suite.server.address,
      headers: values.map((value) => ["Authorization", value]),
    });

  const GOOD: readonly (readonly [string, () => string])[] = [
    ["Bearer <token>", () => `Bearer ${token()}`],
    ["bearer in lower case (RFC 9110 §11.1)", () => `bearer ${token()}`],
    ["BEARER in upper case", () => `BEARER ${token()}`],
    ["two spaces (RFC 6750 §2.1)", () => `Bearer  ${token()}`],
    ["space around it, which is not part of it", () => `  Bearer ${token()}  `],
  ];
  test.each(table(GOOD))("may be %s", async (_, value) => {
    expect((await send(value())).status).toBe(200);
  });

  const BAD: readonly (readonly [string, () => string[]])[] = [
    ["be absent", () => []],
    ["be empty", () => [""]],
    ["be Bearer alone", () => ["Bearer"]],
    ["be the token alone", () => [token()]],
    ["be Basic", () => [`Basic ${Buffer.from(`admin:${token()}`).toString("base64")}`]],
    ["be of another scheme", () => [`Token ${token()}`]],
    ["join scheme and token by a tab", () => [`Bearer\t${token()}`]],
    ["hold two tokens", () => [`Bearer ${token()} ${token()}`]],
    ["be a list", () => [`Bearer ${token()}, Bearer ${token()}`]],
    ["be duplicated with the same token", () => [`Bearer ${token()}`, `Bearer ${token()}`]],
    ["be duplicated, with the valid one first", () => [`Bearer ${token()}`, "Bearer other"]],
    ["be duplicated, with the valid one last", () => ["Bearer other", `Bearer ${token()}`]],
  ];
  test.each(table(BAD))("may not %s", async (_, values) => {
    const { status, body, header } = await send(...values());
    expect({ status, reason: body.error?.details[0].reason }).toEqual({
      status: 401,
      reason: "CALLER_UNAUTHENTICATED",
    });
    expect(header("www-authenticate")).toMatch(/^Bearer realm="keyhold"/);
    expect(JSON.stringify(body)).not.toContain(token());
  });

  test("is the only place for a token: one in the query or in the body is ignored", async () => {
    expectUnauthenticated(await suite.as(null)("GET", `${paths.issued}?access_token=${token()}`), /Bearer/);
    expectUnauthenticated(await suite.as(null)("POST", `${paths.keys}:verify`, { credential: token() }), /Bearer/);
  });
});
