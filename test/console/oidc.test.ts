import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LOGIN_COOKIE, type Login } from "../../src/console/oidc.ts";
import { returnPath } from "../../src/console/return-path.ts";
import { type SealedCookieOptions, sealedCookie } from "../../src/console/sealed-cookie.ts";
import { SESSION_COOKIE, type Session } from "../../src/console/session.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { BrowserClient, locationOf, signInAtIssuer } from "../support/browser-client.ts";
import { table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { useGuardedService } from "../support/guarded.ts";
import { CONSOLE, consoleSettings, type OidcIssuer, startOidcIssuer, VERBOSE_LOGIN } from "../support/oidc-issuer.ts";
import { ROOT_SECRET } from "../support/server.ts";

const [LOGIN, SESSION] = ["__Host-keyhold-login", "__Host-keyhold-session"];
const SCOPE = "openid keyhold:keys.read";

let oidc: OidcIssuer;
beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());

const settings = (more: Record<string, string> = {}) => ({ ...consoleSettings(oidc), ...more });
const suite = useGuardedService(() => settings());

let browser: BrowserClient;
beforeEach(() => {
  browser = new BrowserClient();
});

const urlOf = (path: string) => `${suite.server.url}/console${path}`;
const begin = (returning = "/keys") =>
  browser.fetch(urlOf(`/oidc/login?${new URLSearchParams({ return: returning })}`));
/** Returns where a sign-in leads that begins at another Host, which `fetch` does not send. */
async function locationAt(host: string): Promise<string> {
  const [response]: IncomingMessage[] = await once(
    request(urlOf("/oidc/login"), { agent: false, headers: { host } }).end(),
    "response",
  );
  response?.resume();
  return response?.headers.location ?? "";
}
/** Returns the URL of the callback with the response of the issuer. */
const signInAt = async (options = {}, returning?: string) =>
  signInAtIssuer(browser, locationOf(await begin(returning)), options);

async function whoAmI() {
  const response = await browser.fetch(urlOf("/api/keyhold.v2alpha1.CallersService/WhoAmI"), {
    method: "POST",
    headers: { "content-type": "application/json", "sec-fetch-site": "same-origin" },
    body: "{}",
  });
  const session = response.headers.get("x-keyhold-session");
  return { session, status: response.status, body: JSON.parse(await response.text()) };
}

/** Expects that a request leads to the page with this error, and begins no session. */
async function expectFailure(response: Response, code: string): Promise<void> {
  expect(locationOf(response, urlOf(""))).toBe(urlOf(`?signin_error=${code}`));
  expect(browser.cookies.has(SESSION)).toBe(false);
  expect(await whoAmI()).toMatchObject({ session: "none", status: 401 });
}

function signOut(): Promise<Response> {
  return browser.fetch(urlOf("/session"), { method: "DELETE", headers: { "sec-fetch-site": "same-origin" } });
}

const ring = deriveKeyRing({ current: Buffer.from(ROOT_SECRET), retired: [] }, "console-session");
const cookieAt = <T extends object>(options: SealedCookieOptions, time = 0) =>
  sealedCookie<T>(options, ring, { now: () => systemClock.now() + time });
/** Returns the value in a field `Set-Cookie`. */
const valueIn = (field = "") => /=([^;]*)/.exec(field)?.[1] ?? "";

describe("signing in by OpenID Connect", () => {
  test("begins a session with the access token, returns to the page, and ends at the issuer too", async () => {
    const response = await begin("/keys?filter=status%3Dactive#top");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("set-cookie")).toMatch(/; Path=\/; Secure; HttpOnly; SameSite=Lax$/);
    const authorization = new URL(locationOf(response));
    expect(Object.fromEntries(authorization.searchParams)).toEqual({
      ...{ response_type: "code", client_id: CONSOLE.id, scope: SCOPE },
      redirect_uri: urlOf("/oidc/callback"),
      ...{ code_challenge_method: "S256", code_challenge: expect.stringMatching(/^[\w-]{43}$/) },
      ...{ state: expect.stringMatching(/^[\w-]{43}$/), nonce: expect.stringMatching(/^[\w-]{43}$/) },
      ...{ resource: oidc.audience, audience: oidc.audience },
    });
    const callback = await signInAtIssuer(browser, authorization.href);
    const returned = await browser.fetch(callback);
    expect(returned.headers.get("location")).toBe("/console/keys?filter=status%3Dactive#top");
    expect(returned.headers.getSetCookie()).toEqual([
      `${LOGIN}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0`,
      expect.stringMatching(/^__Host-keyhold-session=[\w.-]+; Path=\/; Secure; HttpOnly; SameSite=Strict$/),
    ]);
    const { status, body } = await whoAmI();
    expect({ status, ...body }).toMatchObject({ status: 200, subject: "ada", auth_method: "AUTH_METHOD_OIDC" });
    expect(Date.parse(body.expire_time)).toBeGreaterThan(Date.now());
    const out = await signOut();
    const { logout_url } = (await out.json()) as { logout_url: string };
    expect(logout_url).toMatch(`${oidc.issuer}/session/end?`);
    expect(Object.fromEntries(new URL(logout_url).searchParams)).toEqual({
      ...{ client_id: CONSOLE.id, post_logout_redirect_uri: urlOf("") },
      id_token_hint: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    });
    expect((await browser.fetch(logout_url)).status).toBe(200);
    expect((await whoAmI()).status).toBe(401);
  });

  test("logs no code, state or token", async () => {
    const callback = new URL(await signInAt());
    await browser.fetch(callback);
    const sealed = `${SESSION}=${browser.cookies.get(SESSION)}`;
    const session = await cookieAt<Session>(SESSION_COOKIE).open({ cookie: sealed });
    await browser.fetch(callback);
    const secrets = [callback.searchParams.get("code"), callback.searchParams.get("state"), session?.credential];
    expect(secrets.filter((secret) => typeof secret !== "string" || secret.length < 20)).toEqual([]);
    expect(secrets.filter((secret) => suite.server.log().includes(secret ?? ""))).toEqual([]);
  });

  test("a response for another sign-in has no effect", async () => {
    const callback = await signInAt();
    const forged = new URL(callback);
    forged.searchParams.set("state", "another");
    const response = await browser.fetch(forged);
    expect(response.headers.getSetCookie()).toEqual([]);
    await expectFailure(response, "mismatch");
    expect(locationOf(await browser.fetch(callback), urlOf(""))).toBe(urlOf("/keys"));
  });

  test("a response without the cookie of its sign-in has no effect", async () => {
    const callback = await signInAt();
    const cookie = browser.cookies.get(LOGIN) ?? "";
    for (const value of [undefined, "", "x", `${cookie.slice(0, -8)}AAAAAAAA`, `${cookie}; ${LOGIN}=${cookie}`]) {
      browser.cookies.clear();
      if (value !== undefined) browser.cookies.set(LOGIN, value);
      const response = await browser.fetch(callback);
      expect(response.headers.getSetCookie()).toEqual([]);
      await expectFailure(response, "expired");
    }
    // Another browser, in the middle of its own sign-in.
    browser.cookies.clear();
    await begin();
    await expectFailure(await browser.fetch(callback), "mismatch");
  });

  test("a code works once", async () => {
    const callback = await signInAt();
    const cookie = browser.cookies.get(LOGIN) ?? "";
    await browser.fetch(callback);
    expect((await whoAmI()).status).toBe(200);
    browser.cookies.clear();
    browser.cookies.set(LOGIN, cookie);
    await expectFailure(await browser.fetch(callback), "rejected");
    expect(suite.server.log()).toContain('"issuer_error":"invalid_grant"');
  });

  test("a code of another sign-in is rejected, because its nonce and verifier are others", async () => {
    const stolen = new URL(await signInAt());
    const own = new URL(locationOf(await begin()));
    stolen.searchParams.set("state", own.searchParams.get("state") ?? "");
    await expectFailure(await browser.fetch(stolen), "rejected");
  });

  test("a sign-in expires after ten minutes", async () => {
    for (const [minutes, isAccepted] of [
      [-9.5, true],
      [-10.1, false],
    ] as const) {
      browser.cookies.clear();
      const callback = await signInAt();
      const cookie = `${LOGIN}=${browser.cookies.get(LOGIN)}`;
      const begun = await cookieAt<Login>(LOGIN_COOKIE).open({ cookie });
      if (begun === undefined) throw new Error("the cookie cannot be opened");
      browser.cookies.set(LOGIN, valueIn(await cookieAt<Login>(LOGIN_COOKIE, minutes * 60_000).seal(begun)));
      const response = await browser.fetch(callback);
      if (isAccepted) expect(locationOf(response, urlOf(""))).toBe(urlOf("/keys"));
      else await expectFailure(response, "expired");
    }
  });

  test("one cookie is not accepted as the other", async () => {
    const callback = await signInAt();
    const login = browser.cookies.get(LOGIN) ?? "";
    await browser.fetch(callback);
    const session = browser.cookies.get(SESSION) ?? "";
    browser.cookies.clear();
    browser.cookies.set(SESSION, login);
    expect((await whoAmI()).status).toBe(401);
    browser.cookies.clear();
    browser.cookies.set(LOGIN, session);
    await expectFailure(await browser.fetch(callback), "expired");
  });

  test("a person can cancel, and the page receives none of the issuer's text", async () => {
    const callback = new URL(await signInAt({ cancels: true }));
    expect(callback.searchParams.get("error")).toBe("access_denied");
    callback.searchParams.set("error_description", "<b>call me</b>");
    await expectFailure(await browser.fetch(callback), "denied");
    expect(browser.cookies.has(LOGIN)).toBe(false);
    const another = new URL(await signInAt({ cancels: true }));
    another.searchParams.set("error", "<script>");
    await expectFailure(await browser.fetch(another), "rejected");
    expect(suite.server.log()).not.toMatch(/call me|<script>/);
  });

  test("a token that fits in no cookie is rejected", async () => {
    await expectFailure(await browser.fetch(await signInAt({ login: VERBOSE_LOGIN })), "token_too_long");
  });

  test("a person without a scope of Keyhold is known, and may do nothing", async () => {
    await suite.server.restart(settings({ KEYHOLD_CONSOLE_OIDC_SCOPES: "" }));
    await browser.fetch(await signInAt());
    expect(await whoAmI()).toMatchObject({ session: "sent", status: 403, body: { code: "permission_denied" } });
    await suite.server.restart(settings());
  });
});

const ELSEWHERE = [
  ...[
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example",
    "https:evil.example",
    "evil.example",
  ],
  ...["javascript:alert(1)", "/%2fevil.example", "/%2Fevil.example", "/%5cevil.example", "%2f%2fevil.example"],
  ...[
    "/../evil",
    "/keys/../../evil",
    "/%2e%2e/evil",
    "/.%2E/evil",
    "/..\\evil",
    "/\t/evil.example",
    "@evil.example",
    ".evil.example",
  ],
  ...["/oidc/login?return=/keys", "/keys/../oidc/login", "/api/x", "/session", "", `/keys?filter=${"x".repeat(1100)}`],
  `/keys/${"\u{1F511}".repeat(200)}`,
];

describe("after signing in, a person returns", () => {
  test.each(table(ELSEWHERE))("to the console instead of %j", async (path) => {
    const target = new URL(returnPath(path), "https://keyhold.test/console/oidc/callback");
    expect(target.href).toBe("https://keyhold.test/console");
  });

  test("to pages of the console", () => {
    expect(returnPath(null)).toBe("/console");
    for (const path of [
      "/",
      "/keys",
      "/keys/0198b2a4",
      "/actors/a%2Fb",
      "/keys?filter=a%3D%22//b%22",
      "/keys?next=https://x#y",
    ])
      expect(returnPath(path)).toBe(`/console${path}`);
    expect(returnPath("/keys/\r\nset-cookie:a=b")).toBe("/console/keys/set-cookie:a=b");
  });

  test("to no other host, whatever the link said", async () => {
    const response = await browser.fetch(await signInAt({}, "//evil.example"));
    expect(response.headers.get("location")).toBe("/console");
  });
});

describe("the configuration", () => {
  test("of a confidential client needs the right secret", async () => {
    const secret = { KEYHOLD_CONSOLE_OIDC_CLIENT_ID: CONSOLE.confidentialId };
    await suite.server.restart(settings({ ...secret, KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: CONSOLE.secret }));
    await browser.fetch(await signInAt());
    expect((await whoAmI()).status).toBe(200);
    browser.cookies.clear();
    await suite.server.restart(settings({ ...secret, KEYHOLD_CONSOLE_OIDC_CLIENT_SECRET: "another" }));
    await expectFailure(await browser.fetch(await signInAt()), "rejected");
  });

  test("of an audience that is no URI leads to no access token of this issuer", async () => {
    await suite.server.restart(settings({ KEYHOLD_OIDC_AUDIENCE: "keyhold" }));
    await expectFailure(await browser.fetch(await signInAt()), "no_access_token");
  });

  test("of the URL of the console is what the issuer gets, whatever the Host", async () => {
    expect(await locationAt("keyhold.test")).toBe("/console?signin_error=unknown_address");
    await suite.server.restart(settings({ KEYHOLD_CONSOLE_URL: "https://keyhold.test" }));
    for (const host of ["keyhold.test", "evil.example"]) {
      const { searchParams } = new URL(await locationAt(host));
      expect(searchParams.get("redirect_uri")).toBe("https://keyhold.test/console/oidc/callback");
    }
  });

  test("of an unreachable issuer leads back, and signing out still works", async () => {
    await suite.server.restart(settings({ KEYHOLD_OIDC_ISSUER: `http://127.0.0.1:${await freePort()}` }));
    await expectFailure(await begin(), "unavailable");
    const session = { credential: "a.b.c", oidc: { idToken: "a.b.c" } };
    browser.cookies.set(SESSION, valueIn(await cookieAt<Session>(SESSION_COOKIE).seal(session)));
    expect((await signOut()).status).toBe(204);
    expect(browser.cookies.has(SESSION)).toBe(false);
  });

  test("limits sign-ins by address, like other calls without a credential", async () => {
    await suite.server.restart(settings({ KEYHOLD_PUBLIC_RATE: "1" }));
    const statuses = await Promise.all(Array.from({ length: 15 }, async () => (await begin()).status));
    expect(statuses).toContain(302);
    expect(statuses).toContain(429);
  });

  test("tells the page how people sign in", async () => {
    const metas = async (environment: Record<string, string>) => {
      await suite.server.restart(environment);
      const html = await (await browser.fetch(urlOf(""))).text();
      return ["oidc-issuer", "admin-tokens"].map(
        (name) => new RegExp(`"keyhold-${name}" content="(.*?)"`).exec(html)?.[1],
      );
    };
    expect(await metas(settings())).toEqual([new URL(oidc.issuer).host, "true"]);
    expect(await metas(settings({ KEYHOLD_AUTH: "oidc" }))).toEqual([new URL(oidc.issuer).host, "false"]);
    expect(await metas({ KEYHOLD_AUTH: "admin-token" })).toEqual(["", "true"]);
  });

  test("without a client has no paths for signing in", async () => {
    await suite.server.restart({ KEYHOLD_AUTH: "admin-token" });
    for (const path of ["/oidc/login", "/oidc/callback?code=a&state=b", "/oidc/other"])
      expect((await browser.fetch(urlOf(path))).status).toBe(404);
    browser.cookies.set(SESSION, valueIn(await cookieAt<Session>(SESSION_COOKIE).seal({ credential: "a", oidc: {} })));
    expect((await signOut()).status).toBe(204);
  });
});
