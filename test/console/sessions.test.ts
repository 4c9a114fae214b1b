import { randomBytes } from "node:crypto";
import { connect } from "node:http2";
import { text } from "node:stream/consumers";
import { EncryptJWT, type JWTHeaderParameters, SignJWT } from "jose";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { LOGIN_COOKIE } from "../../src/console/oidc.ts";
import { sealedCookie } from "../../src/console/sealed-cookie.ts";
import { SESSION_COOKIE, type Session } from "../../src/console/session.ts";
import { deriveKeyRing, type KeyRing, type ServerKeyLabel } from "../../src/domain/server-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { expire, revoke, table } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { ROOT_SECRET, startTestServer } from "../support/server.ts";
import { COOKIE, pairOf, rpc, SAME_ORIGIN, SESSION, type Sent, sealedBy, send, signIn } from "./requests.ts";

const ENVIRONMENT = { KEYHOLD_GATEWAYS: "forward-auth", KEYHOLD_GATEWAY_PORT: "0" };

const suite = useGuardedService(() => ENVIRONMENT);
const { rest } = suite;

const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

const ask = (sent: Sent) => send(suite.server.url, sent);
const get = (path: string, headers: Sent["headers"] = {}) => ask({ path, headers });

const newToken = (fields: Json = {}) => issue(rest, { scopes: ["keyhold:admin"], ...fields });

/** Calls as the page does, and returns the status and the reason of an error. */
async function whoAmI(cookie: string | null, from?: string) {
  const { status, body, headers } = await ask({
    ...rpc(cookie, "CallersService/WhoAmI"),
    ...(from !== undefined && { from }),
  });
  return { status, subject: body.subject, message: body.message, challenge: headers["www-authenticate"] };
}

const NO_SESSION = {
  ...{ status: 401, subject: undefined, message: expect.stringContaining("header is missing") },
  challenge: 'Bearer realm="keyhold"',
};

describe("the files", () => {
  test("the page is never cached, and its policy has a nonce of 128 bits for each response", async () => {
    const nonces = new Set<string>();
    for (const path of ["/console", "/console/", "/console/keys", "/console/keys/x?filter=a", "/console/keys"]) {
      const { status, headers, text } = await get(path, HTML);
      const [, nonce = ""] = /'nonce-([^']*)'/.exec(headers["content-security-policy"]?.toString() ?? "") ?? [];
      nonces.add(nonce);
      expect(Buffer.from(nonce, "base64")).toHaveLength(16);
      expect(text.split(nonce).length).toBeGreaterThan(1);
      expect(text).not.toMatch(/__NONCE__|__PREFIX__/);
      expect({ status, headers }).toMatchObject({
        status: 200,
        headers: {
          "content-type": "text/html; charset=utf-8",
          "cache-control": "no-store",
          "content-security-policy":
            `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self'; font-src 'self'; ` +
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
            "require-trusted-types-for 'script'; trusted-types default",
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin",
          "cross-origin-resource-policy": "same-origin",
        },
      });
      expect(headers).not.toHaveProperty("set-cookie");
      expect(headers).not.toHaveProperty("etag");
    }
    expect(nonces.size).toBe(5);
    const { status, headers, text } = await ask({ method: "HEAD", path: "/console" });
    expect([status, headers["cache-control"], text]).toEqual([200, "no-store", ""]);
  });

  test("assets are immutable, compressed only if the client accepts it, and never sniffed", async () => {
    const { text } = await get("/console", HTML);
    const assets = [...text.matchAll(/(?:src|href)="(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(assets.some((path) => path.endsWith(".js")) && assets.some((path) => path.endsWith(".css"))).toBe(true);
    for (const path of assets) {
      for (const [accepted, encoding] of [
        ["gzip, deflate, br, zstd", "br"],
        ["br;q=0.5", "br"],
        ["BR", "br"],
        ["gzip", undefined],
        ["br;q=0", undefined],
        ["gzip, br; q=0.0", undefined],
        ["x-br, brotli", undefined],
        ["", undefined],
      ] as const) {
        const { status, headers } = await ask({ method: "HEAD", path, headers: { "accept-encoding": accepted } });
        expect({ path, accepted, status, headers }).toMatchObject({
          ...{ path, accepted, status: 200 },
          headers: {
            "cache-control": "public, max-age=31536000, immutable",
            "content-type": path.endsWith(".js") ? "text/javascript; charset=utf-8" : "text/css; charset=utf-8",
            "x-content-type-options": "nosniff",
            vary: "accept-encoding",
          },
        });
        expect([accepted, headers["content-encoding"]]).toEqual([accepted, encoding]);
      }
      expect((await get(path)).text.length).toBeGreaterThan(0);
    }
  });

  test("the icon is answered with 304 to a client that has it", async () => {
    const { headers } = await get("/console/icon.svg");
    expect(headers).toMatchObject({ "content-type": "image/svg+xml", "x-content-type-options": "nosniff" });
    const again = await get("/console/icon.svg", { "if-none-match": String(headers.etag) });
    expect([again.status, again.text]).toEqual([304, ""]);
    expect((await get("/console/icon.svg", { "if-none-match": '"other"' })).status).toBe(200);
  });

  test.each(
    table([
      "/console/assets/unknown.js",
      "/console/assets/",
      "/console/assets",
      "/console/assets/a/b.js",
      "/console/assets/../index.html",
      "/console/assets/%2e%2e/index.html",
      "/console/assets/..%2findex.html",
      "/console/assets/..%2f..%2f..%2fpackage.json",
      "/console/assets/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
      "/console/assets/..%5cindex.html",
      "/console/assets/%252e%252e%252findex.html",
      "/console/assets/index.html",
      "/console/assets/%00",
      "/console/assets/__proto__",
      "/console/api",
      "/console/api/",
      "/console/api/keyhold.v2alpha1.NoService/No",
      "/console/session",
    ]),
  )("%s is unknown, and not the page", async (path) => {
    const { status, headers } = await get(path, HTML);
    expect({ path, status, type: headers["content-type"] }).toEqual({
      ...{ path, status: 404, type: expect.stringMatching(/^application\/json/) },
    });
  });

  test.each(
    table([
      "/console/../package.json",
      "/console/%2e%2e/package.json",
      "/console/..%2f..%2fpackage.json",
      "/console/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
      "/console//evil.example",
      "/console/index.html",
    ]),
  )("%s reads no file", async (path) => {
    const { text, headers } = await get(path, HTML);
    expect(text).toMatch(/^<!doctype html>.*<title>Keyhold<\/title>|^\{"error"/s);
    expect(headers).not.toHaveProperty("location");
  });

  test("/ leads browsers to the console, and others to the documentation, and nowhere else", async () => {
    const leadsTo = async (path: string, headers?: Sent["headers"]) => (await get(path, headers)).headers.location;
    expect(await leadsTo("/", HTML)).toBe("console");
    for (const accept of ["*/*", "application/json"]) expect(await leadsTo("/", { accept })).toBe("docs");
    expect(await leadsTo("/")).toBe("docs");
    expect((await get("/", HTML)).headers.vary).toBe("accept");
    for (const path of ["//evil.example", "/\\evil.example", "/?next=//evil.example", "//evil.example/console"])
      expect([path, (await leadsTo(path, HTML)) ?? "console"]).toEqual([path, "console"]);
  });
});

const CONSOLE_PATHS = [
  "/console",
  "/console/",
  "/console/keys",
  "/console/icon.svg",
  "/console/assets/x.js",
  SESSION,
  "/console/api/keyhold.v2alpha1.CallersService/WhoAmI",
];

/** Expects that nothing of the console is there. */
async function expectNoConsole(url: string): Promise<void> {
  for (const path of CONSOLE_PATHS) {
    for (const method of ["GET", "POST", "DELETE"]) {
      const headers = { ...SAME_ORIGIN, "content-type": "application/json", authorization: "Bearer x" };
      const { status, headers: received } = await send(url, { method, path, headers });
      expect({ method, path, status }).toEqual({ method, path, status: 404 });
      expect(received).not.toHaveProperty("set-cookie");
    }
  }
}

describe("where there is no console", () => {
  test("the port of gateways has nothing of it", () => expectNoConsole(suite.server.gatewayUrl));

  test.each(
    table<Record<string, string>>([
      { KEYHOLD_AUTH: "admin-token", KEYHOLD_CONSOLE: "off" },
      { KEYHOLD_AUTH: "none" },
      { KEYHOLD_AUTH: "", KEYHOLD_CONSOLE: "off" },
    ]),
  )("%o leaves nothing of it", async (environment) => {
    const server = await node(environment);
    await expectNoConsole(server.url);
    const { headers } = await send(server.url, { path: "/", headers: HTML });
    expect(headers.location).toBe("docs");
    expect(await (await fetch(`${server.url}/docs`)).text()).toContain("<nav hidden>");
  });

  test("KEYHOLD_AUTH=none has it when it is on explicitly", async () => {
    const { url } = await node({ KEYHOLD_AUTH: "none", KEYHOLD_CONSOLE: "on" });
    expect((await send(url, { path: "/console", headers: HTML })).status).toBe(200);
    expect(await (await fetch(`${url}/docs`)).text()).not.toContain("hidden");
    const { body } = await send(url, rpc(null, "CallersService/WhoAmI"));
    expect(body).toMatchObject({ subject: "anonymous" });
  });
});

/** Starts another server on the same database for a test. */
async function node(environment: Record<string, string>) {
  const server = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl, ...environment });
  onTestFinished(() => server.close());
  return server;
}

describe("the cookie", () => {
  test("has exactly these attributes, and shows nothing of the credential; neither does the log", async () => {
    const { secret } = await newToken();
    const field = await signIn(suite.server.url, secret);
    expect(field).toMatch(
      /^__Host-keyhold-session=[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]+; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    );
    const cookie = pairOf(field);
    expect(await whoAmI(cookie)).toMatchObject({ status: 200 });
    expect((await ask(rpc(cookie, "ApiKeysService/NoSuchMethod"))).status).toBe(404);
    const end = await ask({ method: "DELETE", path: SESSION, headers: { ...SAME_ORIGIN, cookie } });
    expect([end.status, end.headers["set-cookie"], end.headers["cache-control"]]).toEqual([
      ...[204, [`${COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0`], "no-store"],
    ]);
    const sealed = cookie.slice(COOKIE.length + 1);
    const decoded = sealed.split(".").map((part) => Buffer.from(part, "base64url").toString("latin1"));
    const log = suite.server.log();
    for (let at = 0; at + 8 <= secret.length; at++) {
      const part = secret.slice(at, at + 8);
      const encoded = Buffer.from(part).toString("base64url").slice(0, -2);
      for (const exposed of [sealed, ...decoded])
        expect(exposed.includes(part) || exposed.includes(encoded)).toBe(false);
    }
    for (const part of [secret, secret.slice(-20), sealed, ...sealed.split(".").slice(1)])
      expect(part !== "" && log.includes(part)).toBe(false);
  });

  test("is not given for what is not a bearer credential, or is too long for browsers", async () => {
    for (const authorization of [
      ...["", "Bearer", "Bearer ", "Basic eDp5", "Bearer a b", "Bearer a,b", "Bearer ä", `Bearer ${"x".repeat(3000)}`],
      ...["Bearer a, Bearer b", "bearer"],
    ]) {
      const sent = { method: "POST", path: SESSION, headers: { ...SAME_ORIGIN, authorization } };
      const { status, headers, body } = await ask(sent);
      expect([authorization, status, headers["set-cookie"]]).toEqual([authorization, 400, undefined]);
      const [, , { field_violations: violations } = { field_violations: undefined }] = body.error.details;
      const description =
        authorization.length > 3000 ? "is too long for a cookie" : "must have the form Bearer <credential>";
      expect(body.error.message + JSON.stringify(violations)).toContain(description);
    }
    const longest = "x".repeat(2800);
    const cookie = await signIn(suite.server.url, longest);
    expect(cookie.length).toBeLessThanOrEqual(4096);
    expect(await whoAmI(pairOf(cookie))).toMatchObject({ status: 401 });
  });
});

const TYPES = [
  undefined,
  "",
  "text/plain",
  "TEXT/PLAIN",
  "text/plain;charset=UTF-8",
  "text/plain; application/json",
  "text/plain, application/json",
  "application/x-www-form-urlencoded",
  "Application/X-WWW-Form-Urlencoded; charset=utf-8",
  "multipart/form-data; boundary=application/json",
  "multipart/form-data",
  "text/json",
  "application/jsonp",
  "application/json-patch",
  "application/json+x",
  "*/*",
];

const FOREIGN_SITES = [
  undefined,
  "",
  "none",
  "cross-site",
  "same-site",
  "SAME-ORIGIN",
  "same-origin, cross-site",
  "true",
];

describe("requests that a page of another origin can cause", () => {
  let victim: Awaited<ReturnType<typeof issue>>;
  let cookie: string;
  beforeAll(async () => {
    victim = await issue(rest);
    cookie = pairOf(await signIn(suite.server.url, suite.token("keyhold:admin")));
  });
  const statusOf = async () => (await rest("GET", `${paths.keys}/${victim.keyId}`)).body.status;
  const revocation = () => rpc(cookie, "ApiKeysService/RevokeApiKey", { keyId: victim.keyId });
  /** Returns the call with a header changed, or without it. */
  const withHeader = ({ headers, ...sent }: Sent, name: string, value: string | undefined): Sent => {
    const { [name]: _, ...others }: NonNullable<Sent["headers"]> = headers ?? {};
    return { ...sent, headers: value === undefined ? others : { ...others, [name]: value } };
  };
  const expectDenied = async (sent: Sent) => {
    const { status, headers, body } = await ask(sent);
    expect({ sent, status, set: headers["set-cookie"], reason: body?.error.details[0].reason }).toEqual({
      ...{ sent, status: 403, set: undefined, reason: "CALLER_NOT_PERMITTED" },
    });
  };

  test.each(table(FOREIGN_SITES))("with Sec-Fetch-Site: %s are rejected", async (site) => {
    const attack = { cookie, authorization: "Bearer attacker", origin: "https://evil.example" };
    const ofSession = ["POST", "DELETE"].map((method) => ({ method, path: SESSION, headers: attack }));
    for (const sent of [revocation(), ...ofSession]) await expectDenied(withHeader(sent, "sec-fetch-site", site));
    expect(await statusOf()).toBe("KEY_STATUS_ACTIVE");
  });

  test.each(table(TYPES))("with the type %s are rejected, even by a page of the server", async (type) => {
    await expectDenied(withHeader(revocation(), "content-type", type));
    expect(await statusOf()).toBe("KEY_STATUS_ACTIVE");
  });

  test("of other protocols are rejected, also as two fields", async () => {
    for (const type of [
      "application/grpc",
      "application/grpc-web",
      "application/grpc-web+json",
      "application/grpc+proto",
    ]) {
      const { headers, text } = await ask(withHeader(revocation(), "content-type", type));
      expect([type, headers["grpc-status"] ?? /grpc-status: *(\d+)/.exec(text)?.[1] ?? "7"]).toEqual([type, "7"]);
    }
    const { headers, ...sent } = revocation();
    await expectDenied({ ...sent, headers: { ...headers, "sec-fetch-site": ["same-origin", "cross-site"] } });
    await expectDenied({ ...sent, headers: { ...headers, "content-type": ["text/plain", "application/json"] } });
    expect(await statusOf()).toBe("KEY_STATUS_ACTIVE");
  });

  test("by GET are rejected, and with a session read nothing from another page", async () => {
    const query = `connect=v1&encoding=json&message=${encodeURIComponent("{}")}`;
    const path = `/console/api/keyhold.v2alpha1.CallersService/WhoAmI?${query}`;
    for (const site of [...FOREIGN_SITES, "same-origin"]) {
      const headers = { cookie, ...(site !== undefined && { "sec-fetch-site": site }) };
      await expectDenied({ path, headers });
      if (site !== "same-origin")
        await expectDenied({ path, headers: { ...headers, "content-type": "application/json" } });
    }
    for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      const { status } = await ask({ ...revocation(), method, path: `${revocation().path}?${query}` });
      expect([method, [403, 404, 405, 415].includes(status)]).toEqual([method, true]);
    }
    expect(await statusOf()).toBe("KEY_STATUS_ACTIVE");
  });

  test("with headers of preflights get no permission", async () => {
    for (const path of [SESSION, revocation().path]) {
      const asked = { "access-control-request-method": "POST", "access-control-request-headers": "content-type" };
      const { headers } = await ask({ method: "OPTIONS", path, headers: { origin: "https://evil.example", ...asked } });
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  test("the same calls by the page itself succeed", async () => {
    expect((await ask(withHeader(revocation(), "content-type", "application/json; charset=utf-8"))).status).toBe(200);
    expect(await statusOf()).toBe("KEY_STATUS_REVOKED");
  });
});

test("the cookie has no effect outside of /console/api", async () => {
  const cookie = pairOf(await signIn(suite.server.url, suite.token("keyhold:admin")));
  const json = { ...SAME_ORIGIN, cookie, "content-type": "application/json" };
  const form = { ...json, "content-type": "application/x-www-form-urlencoded" };
  const statuses = await Promise.all(
    [
      { path: paths.keys, headers: json },
      { path: paths.caller, headers: json },
      { method: "POST", path: `${paths.keys}:verify`, headers: json, body: '{"credential":"x"}' },
      { method: "POST", path: "/keyhold.v2alpha1.CallersService/WhoAmI", headers: json, body: "{}" },
      { method: "POST", path: "/console/keyhold.v2alpha1.CallersService/WhoAmI", headers: json, body: "{}" },
      { method: "POST", path: "/v2alpha1/introspect", headers: form, body: "token=x" },
      { path: "/v2alpha1/audit/checkpoint", headers: json },
    ].map(async (sent) => (await ask(sent)).status),
  );
  expect(statuses).toEqual([401, 401, 401, 401, 404, 401, 401]);
  const web = { ...json, "content-type": "application/grpc-web+proto" };
  const grpcWeb = await ask({
    ...{ method: "POST", path: "/keyhold.v2alpha1.CallersService/WhoAmI", headers: web, body: "\0\0\0\0\0" },
  });
  expect(grpcWeb.headers["grpc-status"] ?? /grpc-status: *(\d+)/.exec(grpcWeb.text)?.[1]).toBe("16");
  // The gateway's own token is valid.
  const gateway = { ...json, "x-keyhold-authorization": `Bearer ${suite.token("keyhold:verify")}` };
  const decision = await send(suite.server.gatewayUrl, { path: "/v2alpha1/forwardAuth", headers: gateway });
  expect([decision.status, decision.headers["www-authenticate"]]).toEqual([401, 'Bearer realm="keyhold"']);
});

test("an Authorization header sent to /console/api does not count", async () => {
  const { headers, ...sent } = rpc(null, "CallersService/WhoAmI");
  const [admin, own] = [suite.token("keyhold:admin"), await newToken()];
  for (const authorization of [`Bearer ${admin}`, `bearer ${admin}`])
    expect((await ask({ ...sent, headers: { ...headers, authorization } })).status).toBe(401);
  const cookie = pairOf(await signIn(suite.server.url, own.secret));
  const { body } = await ask({ ...sent, headers: { ...headers, cookie, authorization: `Bearer ${admin}` } });
  expect(body.subject).toBe(own.keyId);
  const broken = await ask({
    ...sent,
    headers: { ...headers, cookie: `${COOKIE}=x`, authorization: `Bearer ${admin}` },
  });
  expect(broken.status).toBe(401);
});

describe("a sealed session", () => {
  const ring = (root: string, label: ServerKeyLabel = "console-session", retired: readonly string[] = []) =>
    deriveKeyRing({ current: Buffer.from(root), retired: retired.map((text) => Buffer.from(text)) }, label);
  const KEYS = ring(ROOT_SECRET);
  const { id, secret: key } = KEYS.current;
  let token: Awaited<ReturnType<typeof issue>>;
  let sealed: string;
  beforeAll(async () => {
    token = await newToken();
    sealed = await sealedBy(suite.server.url, token.secret);
  });
  const accepted = () => ({ status: 200, subject: token.keyId });
  const of = (text: string) => whoAmI(`${COOKIE}=${text}`);
  const expectRejected = async (what: string, cookie: string) =>
    expect({ what, ...(await whoAmI(cookie)) }).toEqual({ what, ...NO_SESSION });

  test("is accepted as it was made, also between other cookies", async () => {
    expect(await of(sealed)).toMatchObject(accepted());
    expect(await whoAmI(`a=b; ${COOKIE}=${sealed}; c=${COOKIE}`)).toMatchObject(accepted());
  });

  test("is rejected with any bit flipped, shortened or extended", async () => {
    const parts = sealed.split(".");
    const ends = new Set(parts.map((_, index) => parts.slice(0, index + 1).join(".").length - 1));
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const changed: string[] = [];
    for (let at = 0; at < sealed.length; at += 7) {
      const value = alphabet.indexOf(sealed.charAt(at));
      // The last character of a part may have bits that do not count (RFC 4648 §3.5): the first always counts.
      const other = value === -1 ? "A" : alphabet.charAt(value ^ 32);
      if (other !== sealed.charAt(at)) changed.push(sealed.slice(0, at) + other + sealed.slice(at + 1));
    }
    for (const end of ends) changed.push(sealed.slice(0, end));
    changed.push("", "x", ".", "....", `${sealed}A`, `${sealed}.`, `.${sealed}`, sealed.toUpperCase(), `"${sealed}"`);
    changed.push([parts[0], parts[1], parts[2], parts[4], parts[3]].join("."));
    expect(changed.length).toBeGreaterThan(40);
    for (const text of changed) await expectRejected(text, `${COOKIE}=${text}`);
  });

  const seal = (header: JWTHeaderParameters & { enc: string }, claims: Json, expiry: string | null = "1h") => {
    const jwt = new EncryptJWT(claims).setProtectedHeader(header);
    return (expiry === null ? jwt : jwt.setExpirationTime(expiry)).encrypt(key);
  };
  const sealedAt = async (credential: string, keys = KEYS, clock = systemClock, cookie = SESSION_COOKIE) =>
    pairOf((await sealedCookie<Session>(cookie, keys, clock).seal({ credential })) ?? "").replace(/^[^=]*=/, "");
  const encode = (value: Json) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const DIR = { alg: "dir", enc: "A256GCM", kid: id, typ: "keyhold-session" };

  test("is rejected with another algorithm, key, expiry or content, even if made with the server's key", async () => {
    const claims = { content: { credential: token.secret } };
    const exp = Math.floor(Date.now() / 1000) + 3600;
    expect(await of(await seal(DIR, claims))).toMatchObject(accepted());
    const [, ...rest] = sealed.split(".");
    const then = { now: () => Date.now() - 13 * 3_600_000 };
    const forged = {
      "another enc": await seal({ ...DIR, enc: "A128CBC-HS256" }, claims),
      "another alg": await seal({ ...DIR, alg: "A256KW" }, claims),
      "another alg of the same cipher": await seal({ ...DIR, alg: "A256GCMKW" }, claims),
      "a header of another alg": [encode({ ...DIR, alg: "A256KW" }), ...rest].join("."),
      "a header of another enc": [encode({ ...DIR, enc: "A128GCM" }), ...rest].join("."),
      "alg none": `${encode({ alg: "none", kid: id })}.${encode({ ...claims, exp })}.`,
      "alg none as JWE": `${encode({ alg: "none", enc: "none", kid: id })}..${encode({})}.${encode({ ...claims, exp })}.`,
      "a signature by the key": await new SignJWT({ ...claims, exp })
        .setProtectedHeader({ alg: "HS256", kid: id })
        .sign(key),
      "the credential itself": token.secret,
      "no kid": await seal({ alg: "dir", enc: "A256GCM" }, claims),
      "an unknown kid": await seal({ ...DIR, kid: "0".repeat(16) }, claims),
      "no expiry": await seal(DIR, claims, null),
      "an expiry in the past": await seal(DIR, claims, "1s ago"),
      "no credential": await seal(DIR, {}),
      "another purpose": await seal({ ...DIR, typ: "keyhold-login" }, claims),
      "no purpose": await seal({ alg: "dir", enc: "A256GCM", kid: id }, claims),
      "sealed 13 hours ago": await sealedAt(token.secret, KEYS, then),
      "sealed by another root secret": await sealedAt(token.secret, ring(randomBytes(32).toString("hex"))),
      "sealed under another label": await sealedAt(token.secret, ring(ROOT_SECRET, "page-token")),
      "sealed for another cookie": await sealedAt(token.secret, KEYS, systemClock, LOGIN_COOKIE),
    };
    for (const [what, text] of Object.entries(forged)) await expectRejected(what, `${COOKIE}=${text}`);
  });

  test("is rejected if sent twice, and ignored under another name", async () => {
    const pair = `${COOKIE}=${sealed}`;
    await expectRejected("twice", `${pair}; ${pair}`);
    await expectRejected("with another", `${pair}; ${COOKIE}=x`);
    for (const name of [
      "keyhold-session",
      "__Secure-keyhold-session",
      "__host-keyhold-session",
      " __Host-keyhold-sessio",
      `x${COOKIE}`,
    ])
      await expectRejected(name, `${name}=${sealed}`);
    await expectRejected("as two fields", `${pair}; a=b; ${COOKIE}=`);
    expect(await whoAmI(`keyhold-session=x; ${pair}`)).toMatchObject(accepted());
  });

  test("lasts twelve hours, and no longer than its root secret is known", async () => {
    let now = Date.now();
    const opened = (keys: KeyRing, text: string) =>
      sealedCookie<Session>(SESSION_COOKIE, keys, { now: () => now }).open({ cookie: `${COOKIE}=${text}` });
    const text = await sealedAt("x");
    now += 12 * 3_600_000 - 5_000;
    expect(await opened(KEYS, text)).toEqual({ credential: "x" });
    expect(await opened(ring("r".repeat(40), "console-session", [ROOT_SECRET]), text)).toEqual({ credential: "x" });
    expect(await opened(ring("r".repeat(40)), text)).toBeUndefined();
    now += 6_000;
    expect(await opened(KEYS, text)).toBeUndefined();
  });

  test("is opened by every node with the root secret, current or retired", async () => {
    const headers = rpc(`${COOKIE}=${sealed}`, "CallersService/WhoAmI");
    const other = await node({ KEYHOLD_AUTH: "admin-token" });
    expect((await send(other.url, headers)).body).toMatchObject({ subject: token.keyId });
    const rotated = await node({
      ...{ KEYHOLD_AUTH: "admin-token", KEYHOLD_ROOT_SECRET: randomBytes(32).toString("hex") },
      KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET,
    });
    expect((await send(rotated.url, headers)).body).toMatchObject({ subject: token.keyId });
  });
});

test("the next call of a session whose token is no longer valid is rejected with the reason", async () => {
  const rejected = (why: string) => ({
    ...{ status: 401, subject: undefined, message: expect.stringMatching(`${why}$`) },
    challenge: expect.stringContaining('error="invalid_token"'),
  });
  for (const [why, end] of [
    ["the key is revoked", ({ keyId }) => revoke(rest, keyId)],
    ["the key is disabled", ({ keyId }) => rest("POST", `${paths.keys}/${keyId}:disable`, {})],
    ["the key has expired", ({ keyId }) => expire(suite, keyId)],
    ["the secret was replaced by a rotation", ({ keyId }) => rest("POST", `${paths.issued}/${keyId}:endGrace`, {})],
  ] as const satisfies readonly [string, (token: Awaited<ReturnType<typeof issue>>) => Promise<unknown>][]) {
    const token = await newToken();
    const cookie = pairOf(await signIn(suite.server.url, token.secret));
    if (why.includes("rotation")) await rest("POST", `${paths.issued}/${token.keyId}:rotate`, { grace_period: "1h" });
    expect(await whoAmI(cookie)).toMatchObject({ status: 200, subject: token.keyId });
    await end(token);
    expect([why, await whoAmI(cookie)]).toEqual([why, rejected(why)]);
  }
});

test("a session has the restrictions of its token", async () => {
  const ip_restriction = { allowed_cidrs: ["127.0.0.1"] };
  const { secret } = await newToken({ ip_restriction, scopes: ["keyhold:keys.read"] });
  const cookie = pairOf(await signIn(suite.server.url, secret));
  expect(await whoAmI(cookie)).toMatchObject({ status: 200 });
  expect(await whoAmI(cookie, "127.0.0.2")).toMatchObject({ status: 401, message: "the admin token is not valid" });
  const { status, body } = await ask(rpc(cookie, "AuditService/ListAuditEvents"));
  expect([status, body.code]).toEqual([403, "permission_denied"]);
});

test("failed calls of the console count for the limit of their address", async () => {
  const { url } = await node({ KEYHOLD_AUTH: "admin-token", KEYHOLD_FAILURE_RATE: "1" });
  const cookie = pairOf(await signIn(url, "guessed"));
  const from = "127.0.0.9";
  const guess = async () => (await send(url, { ...rpc(cookie, "CallersService/WhoAmI"), from })).status;
  const statuses = await Promise.all(Array.from({ length: 30 }, guess));
  expect([...new Set(statuses)].sort()).toEqual([401, 429]);
  const authorization = "Bearer guessed";
  await expect
    .poll(async () => (await send(url, { path: paths.caller, headers: { authorization }, from })).status)
    .toBe(429);
  // A valid credential is not locked out.
  const valid = pairOf(await signIn(url, suite.token("keyhold:admin")));
  expect((await send(url, { ...rpc(valid, "CallersService/WhoAmI"), from })).status).toBe(200);
});

test("over HTTP/2 the same rules hold, and a divided Cookie field is one", async () => {
  const token = await newToken();
  const sealed = await sealedBy(suite.server.url, token.secret);
  const session = connect(suite.server.url);
  const call = async (fields: Record<string, string | string[]>) => {
    const { headers, method, path, body } = rpc(null, "CallersService/WhoAmI");
    const stream = session.request({ ":method": method, ":path": path, ...headers, ...fields });
    stream.end(body);
    const [[response], received] = await Promise.all([
      new Promise<[Record<string, unknown>]>((resolve) => stream.on("response", (fields) => resolve([fields]))),
      text(stream),
    ]);
    return { status: response[":status"], subject: JSON.parse(received).subject };
  };
  try {
    const pair = `${COOKIE}=${sealed}`;
    expect(await call({ cookie: ["a=b", pair, "c=d"] })).toEqual({ status: 200, subject: token.keyId });
    expect(await call({ cookie: `a=b; ${pair}` })).toEqual({ status: 200, subject: token.keyId });
    expect(await call({ cookie: [pair, pair] })).toMatchObject({ status: 401 });
    expect(await call({ cookie: ["a=b"], authorization: `Bearer ${token.secret}` })).toMatchObject({ status: 401 });
    expect(await call({ cookie: pair, "sec-fetch-site": "same-site" })).toMatchObject({ status: 403 });
    expect(await call({ cookie: pair, "content-type": "text/plain" })).toMatchObject({ status: 403 });
  } finally {
    session.destroy();
  }
});

test("without KEYHOLD_AUTH, Host, Origin and proxies are checked for the console as well", async () => {
  const { url } = await node({ KEYHOLD_AUTH: "" });
  const [call, page] = [rpc(null, "CallersService/WhoAmI"), { path: "/console", headers: HTML }];
  expect((await send(url, call)).body).toMatchObject({ subject: "anonymous" });
  expect((await send(url, page)).status).toBe(200);
  const begin = { method: "POST", path: SESSION, headers: { ...SAME_ORIGIN, authorization: "Bearer x" } };
  for (const sent of [call, page, begin, { path: "/console/icon.svg" }])
    for (const [headers, reason] of [
      [{ host: "evil.example" }, "HOST_NOT_ALLOWED"],
      [{ host: `evil.example:${new URL(url).port}`, origin: `http://evil.example` }, "HOST_NOT_ALLOWED"],
      [{ origin: "https://evil.example" }, "ORIGIN_NOT_ALLOWED"],
      [{ origin: "null" }, "ORIGIN_NOT_ALLOWED"],
      [{ "x-forwarded-for": "203.0.113.7" }, "PROXY_NOT_ALLOWED"],
    ] as const) {
      const { status, body } = await send(url, {
        ...sent,
        headers: { ...("headers" in sent && sent.headers), ...headers },
      });
      expect([sent.path, headers, status, body?.error.details[0].reason]).toEqual([sent.path, headers, 403, reason]);
    }
  // A page of this machine, on another port: its origin is allowed, but the console answers only its own page.
  const { headers, ...sent } = call;
  const neighbour = { ...headers, origin: "http://localhost:1", "sec-fetch-site": "same-site" };
  expect((await send(url, { ...sent, headers: neighbour })).status).toBe(403);
});
