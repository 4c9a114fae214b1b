import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { KeyPagesService } from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
import type { KeyPageGrant } from "../../src/domain/key-page.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import {
  KEY_PAGE_LIFETIME,
  keyPageAuthorization,
  LINK_LIFETIME,
  type OpenKeyPageSession,
} from "../../src/keys/key-page.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Sealer } from "../../src/token/sealer.ts";
import { expectRefused, expire, revoke, table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { callAsPage, createKeyPage, openKeyPage, openLink, sealedIn } from "../support/key-pages.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { issue, type Json, paths, restClient, verify } from "../support/rest.ts";
import { ROOT_SECRET, startTestServer } from "../support/server.ts";

/* Every RPC of every session: `matrix.test.ts`. */

const suite = useGuardedService();
const { rest } = suite;

const url = () => suite.server.url;
const whoAmI = (sealed: string, from = url()) => callAsPage(from, sealed, "CallersService/WhoAmI");
const newCreator = (fields: Json = {}) => issue(rest, { scopes: ["keyhold:key-pages"], ...fields });
const ENDED = { status: 401, body: { code: "unauthenticated", message: expect.stringContaining("has ended") } };

describe("a link", () => {
  test("opens its session once, of 20 attempts at the same time and in each attempt after it", async () => {
    const { token, sessionId } = await createKeyPage(rest);
    const responses = await Promise.all(Array.from({ length: 20 }, () => openLink(url(), token)));
    responses.push(await openLink(url(), token));
    const opened = responses.filter(({ status }) => status === 204);
    expect(opened).toHaveLength(1);
    for (const response of responses.filter((one) => one !== opened[0])) {
      expect(response.status).toBe(401);
      expect(await response.text()).toContain("was used already, or has expired");
      expect(response.headers.get("set-cookie")).toBeNull();
    }
    const rows = await suite.sql`SELECT open_time FROM key_page_sessions WHERE session_id = ${sessionId}`;
    expect(rows).toEqual([{ open_time: expect.any(Date) }]);
  });

  test("has its token in the fragment, which browsers send to no server, and no secret of the caller", async () => {
    const { url: link, token } = await createKeyPage(suite.as(suite.token("keyhold:key-pages")));
    expect(link).toBe(`${url()}/keys#${token}`);
    expect(JSON.stringify(await suite.sql`SELECT * FROM key_page_sessions`)).not.toContain(token.slice(-16));
    expect(suite.server.log()).not.toContain(token.slice(-16));
  });

  test("is neither a session nor a credential, and a session is no link", async () => {
    const { token } = await createKeyPage(rest);
    expect(await whoAmI(token)).toMatchObject(ENDED);
    expect((await suite.as(token)("GET", paths.caller)).status).toBe(401);
    const sealed = await openKeyPage(url(), rest);
    expect((await openLink(url(), sealed)).status).toBe(401);
    expect((await suite.as(sealed)("GET", paths.caller)).status).toBe(401);
  });

  test("expires after 10 minutes, and its session after an hour", async () => {
    let now = Date.now();
    const sealer = <T extends object>(purpose: string, lifetime: number) =>
      new Sealer<T>({ purpose, lifetime }, RING, { now: () => now });
    const [link, session] = [
      sealer("keyhold-key-page-link", LINK_LIFETIME),
      sealer("keyhold-key-page", KEY_PAGE_LIFETIME),
    ];
    const { token } = await createKeyPage(rest);
    const sealed = await openKeyPage(url(), rest);
    now += 590_000;
    expect(await link.open(token)).toMatchObject({ grant: { actorId: "own" } });
    now += 11_000;
    expect(await link.open(token)).toBeUndefined();
    now += 3_600_000 - 601_000 - 10_000;
    expect(await session.open(sealed)).toMatchObject({ grant: { actorId: "own" } });
    now += 11_000;
    expect(await session.open(sealed)).toBeUndefined();
  });

  test("must be opened by the page itself", async () => {
    const { token } = await createKeyPage(rest);
    for (const site of [undefined, "none", "cross-site", "same-site"]) {
      const headers = { ...bearer(token), ...(site !== undefined && { "sec-fetch-site": site }) };
      expect((await fetch(`${url()}/keys/session`, { method: "POST", headers })).status).toBe(403);
    }
    expect((await openLink(url(), token)).status).toBe(204);
  });

  test("is removed an hour after it has expired", async () => {
    const { sessionId } = await createKeyPage(rest);
    const stored = () => suite.sql`SELECT FROM key_page_sessions WHERE session_id = ${sessionId}`;
    await suite.sql`UPDATE key_page_sessions SET expire_time = now() - interval '59 minutes' WHERE session_id = ${sessionId}`;
    await createKeyPage(rest);
    expect(await stored()).toHaveLength(1);
    await suite.sql`UPDATE key_page_sessions SET expire_time = now() - interval '61 minutes' WHERE session_id = ${sessionId}`;
    await createKeyPage(rest);
    expect(await stored()).toHaveLength(0);
  });
});

const RING = deriveKeyRing({ current: Buffer.from(ROOT_SECRET), retired: [] }, "console-session");

describe("a session", () => {
  const endings: Readonly<Record<string, (keyId: string) => Promise<unknown>>> = {
    revoked: (keyId) => revoke(rest, keyId),
    rotated: (keyId) => rest("POST", `${paths.issued}/${keyId}:rotate`, {}),
    disabled: (keyId) => rest("POST", `${paths.keys}/${keyId}:disable`, {}),
    expired: (keyId) => expire(suite, keyId),
    "without the scope": (keyId) => rest("PATCH", `${paths.issued}/${keyId}?update_mask=scopes`, { scopes: ["read"] }),
  };
  test.each(table(Object.keys(endings)))("ends when the admin token that created it is %s", async (name) => {
    const { secret, keyId } = await newCreator();
    const other = await startTestServer({
      KEYHOLD_AUTH: "admin-token",
      KEYHOLD_DATABASE_URL: suite.server.databaseUrl,
    });
    onTestFinished(() => other.close());
    const sealed = await openKeyPage(url(), suite.as(secret));
    const { token } = await createKeyPage(suite.as(secret));
    for (const node of [url(), other.url]) expect((await whoAmI(sealed, node)).status).toBe(200);
    await endings[name]?.(keyId);
    for (const node of [url(), other.url]) {
      const answer = await whoAmI(sealed, node);
      expect(answer).toMatchObject(ENDED);
      expect(answer.headers.get("x-keyhold-session")).toBe("sent");
      // It opens no further session either, and stays unused.
      expect((await openLink(node, token)).status).toBe(401);
    }
  });

  test("continues while the old secret of its creator is in its grace period", async () => {
    const { secret, keyId } = await newCreator();
    const sealed = await openKeyPage(url(), suite.as(secret));
    await rest("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: "1h" });
    expect((await whoAmI(sealed)).status).toBe(200);
    await rest("POST", `${paths.issued}/${keyId}:endGrace`, {});
    expect(await whoAmI(sealed)).toMatchObject(ENDED);
  });

  test("does not outlive its creator", async () => {
    const { secret, record } = await newCreator({ ttl: "20m" });
    const sealed = await openKeyPage(url(), suite.as(secret));
    expect((await whoAmI(sealed)).body.expire_time).toBe(record.expire_time);
  });

  test("does not have the address restriction of its creator, who calls from a server", async () => {
    const { secret, keyId } = await newCreator();
    const sealed = await openKeyPage(url(), suite.as(secret));
    const restriction = { ip_restriction: { allowed_cidrs: ["192.0.2.1/32"] } };
    await rest("PATCH", `${paths.issued}/${keyId}?update_mask=ip_restriction`, restriction);
    expect((await suite.as(secret)("GET", paths.caller)).status).toBe(401);
    expect((await whoAmI(sealed)).status).toBe(200);
  });

  test("is for an actor of a restricted creator", async () => {
    const { secret } = await newCreator({ actor_id: "own", restricted_to_actor_ids: ["own", "also own"] });
    expect((await createKeyPage(suite.as(secret), { actor_id: "also own" })).token).not.toBe("");
    expectRefused(await suite.as(secret)("POST", paths.keyPageSessions, { actor_id: "foreign" }), {
      ...{ code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED", metadata: { field: "actor_id" } },
    });
  });

  test("counts only below /keys/api, in calls of the page itself", async () => {
    const sealed = await openKeyPage(url(), rest);
    const cookie = `__Host-keyhold-key-page=${sealed}`;
    const call = (prefix: string, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${url()}${prefix}/keyhold.v2alpha1.CallersService/WhoAmI`, {
        ...{ method: "POST", body: "{}", headers: { "content-type": "application/json", cookie, ...headers } },
      });
    const own = { "sec-fetch-site": "same-origin" };
    expect((await call("/keys/api", own)).status).toBe(200);
    for (const prefix of ["", "/console/api"]) expect((await call(prefix, own)).status).toBe(401);
    const others: Record<string, string>[] = [
      {},
      { "sec-fetch-site": "cross-site" },
      { ...own, "content-type": "text/plain" },
    ];
    for (const headers of others) expect((await call("/keys/api", headers)).status).toBe(403);
    // A credential in the call has no effect, so that another page cannot give it one.
    const none = { ...own, cookie: "", authorization: `Bearer ${suite.token("keyhold:admin")}` };
    expect((await call("/keys/api", none)).status).toBe(401);
    const admin = await call("/keys/api", { ...own, authorization: `Bearer ${suite.token("keyhold:admin")}` });
    expect(await admin.json()).toMatchObject({ auth_method: "AUTH_METHOD_KEY_PAGE" });
  });

  test("is rejected if no server has sealed it", async () => {
    const sealed = await openKeyPage(url(), rest);
    const parts = sealed.split(".");
    const changed = parts.with(3, `${parts[3]?.slice(0, -2)}AA`).join(".");
    const foreign = new Sealer<OpenKeyPageSession>(
      { purpose: "keyhold-key-page", lifetime: KEY_PAGE_LIFETIME },
      deriveKeyRing({ current: Buffer.from("x".repeat(40)), retired: [] }, "console-session"),
      systemClock,
    );
    const forged = await foreign.seal({
      id: "",
      grant: GRANT,
      creator: { method: "none", subject: "" },
      expireTime: 9e15,
    });
    for (const text of [changed, forged, "", "a.b.c.d.e"]) {
      expect(await whoAmI(text)).toMatchObject({ status: 401 });
      const header = { authorization: keyPageAuthorization(text) };
      expect((await restClient(suite.server, header)("GET", paths.caller)).status).toBe(401);
    }
  });
});

const GRANT: KeyPageGrant = { actorId: "own", permissions: [], allowedScopes: [], maxTtl: null, returnUrl: null };

describe("the owner of keys", () => {
  const create = (sealed: string, fields: Json = {}) =>
    callAsPage(url(), sealed, "IssuedApiKeysService/CreateIssuedApiKey", { name: "n", actor_id: "own", ...fields });
  const rotate = (sealed: string, key_id: string) =>
    callAsPage(url(), sealed, "IssuedApiKeysService/RotateIssuedApiKey", { key_id });
  const revokeAsOwner = (sealed: string, key_id: string) =>
    callAsPage(url(), sealed, "ApiKeysService/RevokeApiKey", { key_id });
  const DENIED = { status: 403, body: { code: "permission_denied" } };

  let sealed: string;
  beforeAll(async () => {
    sealed = await openKeyPage(url(), rest, { allowed_scopes: ["read", "write"], max_ttl: "90d" });
  });

  test("creates, rotates and revokes a key, and the audit log says by which session and whose credential", async () => {
    const creator = await newCreator();
    const { sessionId, token } = await createKeyPage(suite.as(creator.secret), { permissions: FOUR });
    const session = sealedIn(await openLink(url(), token));
    const { body: created } = await create(session, { scopes: ["read"] });
    expect(await verify(rest, created.secret)).toMatchObject({ is_valid: true, actor_id: "own", scopes: ["read"] });
    const { key_id } = created.issued_api_key;
    const { body: rotated } = await rotate(session, key_id);
    expect(await verify(rest, created.secret)).toMatchObject({ is_valid: false });
    expect(await verify(rest, rotated.secret)).toMatchObject({ is_valid: true });
    expect((await revokeAsOwner(session, key_id)).status).toBe(200);
    expect(await verify(rest, rotated.secret)).toMatchObject({ is_valid: false });
    const { body } = await rest(
      "GET",
      `${paths.auditEvents}?filter=${encodeURIComponent(`key_id="${key_id}" OR resource_id="${sessionId}"`)}`,
    );
    const owner = { name: "key-page:own", method: "key-page", subject: "own", key_id: creator.keyId };
    expect(body.audit_events.map(({ action, caller }: Json) => ({ action, caller })).reverse()).toMatchObject([
      { action: "key_page_session.created", caller: { method: "admin-token", key_id: creator.keyId } },
      { action: "key_page_session.opened", caller: owner },
      ...["key.issued", "key.rotated", "key.revoked"].map((action) => ({ action, caller: owner })),
    ]);
  });

  test.each(
    table([
      { scopes: ["read", "admin"] },
      { scopes: ["keyhold:keys.read"] },
      { scopes: ["READ"] },
      { scopes: ["read "] },
      { actor_id: "foreign" },
      { metadata: { plan: "free" } },
      { rate_limits: [{ name: "r", quota: 1, window: "1s" }] },
      { quotas: [{ name: "q", limit: 1, period: "QUOTA_PERIOD_MONTH" }] },
      { scopes: ["keyhold:keys.read"], restricted_to_actor_ids: ["own"] },
      { ttl: "91d" },
      { ttl: undefined },
      { ttl: undefined, expire_time: "2099-01-01T00:00:00Z" },
    ]),
  )("cannot create a key with %o", async (fields) => {
    const before = await suite.sql`SELECT count(*) FROM api_keys`;
    const { status } = await create(sealed, { scopes: ["read"], ttl: "90d", ...fields });
    expect([400, 403]).toContain(status);
    expect(await suite.sql`SELECT count(*) FROM api_keys`).toEqual(before);
  });

  test("creates a key with every field that is left to them", async () => {
    const fields = { scopes: ["read", "write"], ttl: "90d", ip_restriction: { allowed_cidrs: ["192.0.2.0/24"] } };
    const { status, body } = await create(sealed, { ...fields, request_id: "11111111-1111-4111-8111-111111111111" });
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { issued_api_key: { scopes: fields.scopes, metadata: {} } },
    });
  });

  test("may revoke a key with another scope, but not rotate it", async () => {
    const { keyId, secret } = await issue(rest, { actor_id: "own", scopes: ["read", "admin"] });
    expect(await rotate(sealed, keyId)).toMatchObject({
      ...DENIED,
      body: { message: "the key page does not allow the scope admin" },
    });
    expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
    expect((await revokeAsOwner(sealed, keyId)).status).toBe(200);
  });

  test("sees an admin token of the actor, but cannot change it", async () => {
    const fields = { actor_id: "own", scopes: ["keyhold:keys.rotate"], restricted_to_actor_ids: ["own"] };
    const { keyId, secret } = await issue(rest, fields);
    expect(await callAsPage(url(), sealed, "ApiKeysService/GetApiKey", { key_id: keyId })).toMatchObject({
      status: 200,
    });
    expect(await rotate(sealed, keyId)).toMatchObject(DENIED);
    expect(await revokeAsOwner(sealed, keyId)).toMatchObject(DENIED);
    expect((await suite.as(secret)("GET", paths.caller)).status).toBe(200);
  });
});

const FOUR = ["CREATE", "ROTATE", "REVOKE", "VIEW_USAGE"].map((name) => `KEY_PAGE_PERMISSION_${name}`);

describe("the creation", () => {
  const post = (fields: Json) => rest("POST", paths.keyPageSessions, { actor_id: "own", ...fields });

  test.each(
    table([
      ["actor_id", { actor_id: "" }],
      ["permissions", { permissions: ["KEY_PAGE_PERMISSION_DELETE"] }],
      ["permissions[0]", { permissions: ["KEY_PAGE_PERMISSION_UNSPECIFIED"] }],
      ["allowed_scopes[1]", { allowed_scopes: ["read", "keyhold:keys.read"] }],
      ["allowed_scopes[0]", { allowed_scopes: ["with space"] }],
      ["allowed_scopes", { allowed_scopes: Array.from({ length: 20 }, (_, place) => `${place}`.padEnd(200, "x")) }],
      ["max_ttl", { max_ttl: "soon" }],
      ["return_url", { return_url: "javascript:alert(1)" }],
      ["return_url", { return_url: "//evil.example" }],
      ["return_url", { return_url: "http://app.example" }],
    ] as const),
  )("is rejected with a wrong %s: %o", async (field, fields) => {
    const before = await suite.sql`SELECT count(*) FROM key_page_sessions`;
    const { status, body } = await post(fields);
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(field);
    expect(await suite.sql`SELECT count(*) FROM key_page_sessions`).toEqual(before);
  });

  test("grants what a cookie can hold, whatever is in it", async () => {
    const sizes = [{ actor_id: "ä".repeat(255) }, { return_url: `https://app.example/${"x".repeat(1000)}` }, {}];
    for (const fields of sizes) {
      let length = 2_600;
      const scopes = () => Array.from({ length: Math.ceil(length / 60) }, (_, place) => `${place}`.padEnd(57, "s"));
      while ((await post({ permissions: FOUR, ...fields, allowed_scopes: scopes().slice(0, 100) })).status !== 200)
        length -= 60;
      expect(length).toBeGreaterThan(1_000);
      const { token } = await createKeyPage(rest, { ...fields, allowed_scopes: scopes() });
      const opened = await openLink(url(), token);
      expect(opened.status).toBe(204);
      expect((opened.headers.get("set-cookie") ?? "").length).toBeLessThanOrEqual(4096);
      expect((await whoAmI(sealedIn(opened))).status).toBe(200);
    }
  });

  test("answers over gRPC with the same URL", async () => {
    const grpc = grpcProtocol("gRPC", suite.server.address);
    onTestFinished(() => grpc.close());
    const reply = await grpc.call(
      KeyPagesService.method.createKeyPageSession,
      { actorId: "own" },
      bearer(suite.token("keyhold:key-pages")),
    );
    expect(reply).toMatchObject({ ok: true, message: { url: expect.stringMatching(new RegExp(`^${url()}/keys#`)) } });
  });

  test("needs the origin at which browsers reach the page, unless that is a loopback address", async () => {
    const response = await fetch(`${url()}${paths.keyPageSessions}`, { method: "POST" });
    expect(response.status).toBe(401);
    const { port } = new URL(url());
    const { send } = await import("../console/requests.ts");
    const answer = await send(url(), {
      ...{ method: "POST", path: paths.keyPageSessions, body: JSON.stringify({ actor_id: "own" }) },
      headers: {
        ...bearer(suite.token("keyhold:key-pages")),
        ...{ host: `keyhold.example:${port}`, "content-type": "application/json" },
      },
    });
    expect(answer).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringContaining("KEYHOLD_CONSOLE_URL") } },
    });
  });
});

describe("a server", () => {
  const start = async (environment: Record<string, string>) => {
    const server = await startTestServer({ KEYHOLD_DATABASE_URL: suite.server.databaseUrl, ...environment });
    onTestFinished(() => server.close());
    return server;
  };

  test("with a public origin and origins that may frame the page says so in the URL, the policy and the cookie", async () => {
    const server = await start({
      KEYHOLD_CONSOLE_URL: "https://keyhold.example",
      KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: "https://app.example,https://www.app.example",
      KEYHOLD_KEY_PAGES_NAME: `A & "B" <script>__NONCE__`,
      KEYHOLD_KEY_PAGES_COLOR: "#0A84FF",
    });
    const { url: link, token } = await createKeyPage(restClient(server));
    expect(link).toMatch(/^https:\/\/keyhold\.example\/keys#/);
    const opened = await openLink(server.url, token);
    expect(opened.headers.get("set-cookie")).toMatch(/; Path=\/; Secure; HttpOnly; SameSite=None; Partitioned$/);
    const page = await fetch(`${server.url}/keys`);
    expect(page.headers.get("content-security-policy")).toContain(
      "; frame-ancestors https://app.example https://www.app.example; ",
    );
    const html = await page.text();
    expect(html).toContain(`content="A &amp; &quot;B&quot; &lt;script>__NONCE__"`);
    expect(html).toContain(`content="#0a84ff"`);
    expect((await fetch(`${server.url}/keys/logo`)).status).toBe(404);
  });

  test("serves a logo as an image that is inert as a document", async () => {
    const file = join(inject("testDir"), "logo.svg");
    const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`;
    await writeFile(file, svg);
    const server = await start({ KEYHOLD_KEY_PAGES_LOGO_FILE: file });
    const response = await fetch(`${server.url}/keys/logo`);
    expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
      200,
      "image/svg+xml",
      svg,
    ]);
    expect(response.headers.get("content-security-policy")).toBe(
      "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    );
    expect(await (await fetch(`${server.url}/keys`)).text()).toContain(`content="/keys/logo"`);
  });

  test("limits the changes of an owner like those of any caller, in all of their sessions together", async () => {
    const server = await start({ KEYHOLD_CHANGE_RATE: "1" });
    const sessionOf = (actor_id: string) => openKeyPage(server.url, restClient(server), { actor_id });
    const [one, two, other] = await Promise.all(["busy", "busy", "calm"].map(sessionOf));
    const create = (sealed = "", actor_id = "busy") =>
      callAsPage(server.url, sealed, "IssuedApiKeysService/CreateIssuedApiKey", { name: "n", actor_id });
    const results = await Promise.all(Array.from({ length: 100 }, (_, place) => create(place % 2 === 0 ? one : two)));
    expect(results.filter(({ status }) => status === 429).length).toBeGreaterThan(0);
    expect((await create(other, "calm")).status).toBe(200);
  });

  test.each(
    table([
      { offered: "2592000s" },
      { max_ttl: "90d", offered: "2592000s" },
      { max_ttl: "7d", offered: "604800s" },
    ] as readonly { readonly max_ttl?: string; readonly offered: string }[]),
  )("with a maximum lifetime of keys allows the owner what it offers: %o", async ({ offered, ...fields }) => {
    const server = await start({ KEYHOLD_MAX_KEY_TTL: "30d" });
    const sealed = await openKeyPage(server.url, restClient(server), fields);
    const { body } = await whoAmI(sealed, server.url);
    expect(body.key_page_session.max_ttl).toBe(offered);
    const create = (ttl: string) =>
      callAsPage(server.url, sealed, "IssuedApiKeysService/CreateIssuedApiKey", { name: "n", actor_id: "own", ttl });
    expect((await create(offered)).status).toBe(200);
    expect([400, 403]).toContain((await create(`${Number.parseInt(offered, 10) + 1}s`)).status);
  });

  test("without the page has none of its paths, and says how to switch it on", async () => {
    const server = await start({ KEYHOLD_KEY_PAGES: "off" });
    for (const path of ["/keys", "/keys/icon.svg", "/keys/session", "/keys/api/keyhold.v2alpha1.CallersService/WhoAmI"])
      for (const method of ["GET", "POST"]) expect((await fetch(`${server.url}${path}`, { method })).status).toBe(404);
    expectRefused(await restClient(server)("POST", paths.keyPageSessions, { actor_id: "own" }), {
      ...{ code: 409, status: "FAILED_PRECONDITION", reason: "KEY_PAGES_UNAVAILABLE" },
    });
  });

  test("without authentication has sessions that are limited all the same, and none once it requires a credential", async () => {
    const open = await start({});
    const sealed = await openKeyPage(open.url, restClient(open), { permissions: [] });
    expect((await whoAmI(sealed, open.url)).body).toMatchObject({ auth_method: "AUTH_METHOD_KEY_PAGE" });
    const { status } = await callAsPage(open.url, sealed, "IssuedApiKeysService/CreateIssuedApiKey", {
      name: "n",
      actor_id: "own",
    });
    expect(status).toBe(403);
    expect(await whoAmI(sealed)).toMatchObject(ENDED);
    // Any other header has no effect there.
    expect((await restClient(open, { authorization: "Bearer x" })("GET", paths.caller)).status).toBe(200);
  });
});
