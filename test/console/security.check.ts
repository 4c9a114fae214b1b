import { createServer } from "node:http";
import { MethodOptions_IdempotencyLevel as Idempotency } from "@bufbuild/protobuf/wkt";
import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { quoted } from "../../console/parts/filter-text.ts";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { succeeded } from "../support/conformance.ts";
import { listenLocally } from "../support/listen.ts";
import { startChromium } from "../support/programs/chromium.ts";
import { issue, paths, verify } from "../support/rest.ts";
import { useConsole } from "./console.ts";
import { PAYLOADS } from "./payloads.ts";

const suite = useConsole();

/** RPCs that a page calls when it is opened. An address of the console, which anyone can send to people, changes nothing. */
const READS = new Set(
  SERVICES.flatMap(({ typeName, methods }) =>
    methods
      .filter(({ idempotency, name }) => idempotency === Idempotency.NO_SIDE_EFFECTS || name === "ExplainApiKey")
      .map(({ name }) => `/console/api/${typeName}/${name}`),
  ),
);

/** Watches a page for what it should never do. Call `expectHarmless` for each address that it has opened. */
async function guard(page: Page) {
  const { origin } = new URL(suite.server.url);
  const offences: string[] = [];
  page.on("dialog", (dialog) => {
    offences.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.context().on("page", (popup) => offences.push(`popup: ${popup.url()}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin) offences.push(`request: ${request.url()}`);
    if (url.pathname.startsWith("/console/api/") && !READS.has(url.pathname)) offences.push(`change: ${url.pathname}`);
  });
  page.on("framenavigated", (frame) => {
    if (!frame.url().startsWith(`${origin}/console`)) offences.push(`navigation: ${frame.url()}`);
  });
  const expectHarmless = async (what: string) => {
    const found = await page.evaluate(() => {
      const { location } = globalThis as unknown as { location: { origin: string } };
      // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
      const all: any[] = [...(globalThis as any).document.querySelectorAll("*")];
      return all.flatMap((element) => {
        const names: string[] = element.getAttributeNames();
        const isForeign = (name: string) =>
          element.hasAttribute(name) && new URL(element.getAttribute(name), location.origin).origin !== location.origin;
        const isActive = ["IFRAME", "OBJECT", "EMBED", "BASE", "TEMPLATE", "AUDIO", "VIDEO"].includes(element.tagName);
        const isScript =
          /^script$/i.test(element.tagName) && !element.src?.startsWith(`${location.origin}/console/assets/`);
        const hasHandler = names.some((name) => name.startsWith("on"));
        return isActive || isScript || hasHandler || ["href", "src", "action", "ping"].some(isForeign)
          ? [element.outerHTML]
          : [];
      });
    });
    const pwned = await page.evaluate("window.__pwned");
    expect({ what, found, pwned, offences }).toEqual({ what, found: [], pwned: undefined, offences: [] });
  };
  return { expectHarmless };
}

/** Opens another page of the console without loading the document again, as a link does. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate((url) => {
    // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
    (globalThis as any).history.pushState({}, "", url);
  }, `/console${path}`);
}

/** Waits until what the page has asked for is there. */
async function settled(page: Page): Promise<void> {
  await page.getByRole("main").waitFor();
  await expect.poll(() => page.getByRole("status", { name: "Loading" }).count()).toBe(0);
}

const heading = (page: Page) => page.getByRole("heading", { level: 1 });

interface Stored {
  readonly name: string;
  readonly keyId: string;
  readonly secret: string;
}

/** Stores a payload in each field that people, or their clients, can fill. */
async function store(payload: string, index: number): Promise<Stored> {
  const name = payload.slice(0, 255);
  // Scopes, request ids and User-Agent have fewer characters.
  const visible = payload.replaceAll(/[^!-~]/gu, "/").slice(0, 100);
  const { secret, keyId, record } = await issue(suite.rest, {
    ...{ name, actor_id: name, scopes: [visible], request_id: `${index}/${visible}` },
    metadata: { [payload]: payload, value: payload },
  });
  expect(record).toMatchObject({ name, actor_id: name, scopes: [visible], metadata: { value: payload } });
  const client = { "user-agent": visible, "x-request-id": `p${index}` };
  const [action, change] =
    index % 2 === 0 ? ["disable", { reason: payload }] : ["revoke", { revocation_description: payload }];
  succeeded(await suite.rest("POST", `${paths.keys}/${keyId}:${action}`, change, client));
  const endpoint = { url: `https://webhooks.example/?${encodeURIComponent(payload)}`, event_types: ["key.deleted"] };
  const filter = `actor_id=${quoted(payload)}`;
  const id = `p${index}`;
  succeeded(
    await suite.rest("POST", paths.webhookEndpoints, { endpoint_id: id, ...endpoint, description: payload, filter }),
  );
  const limits = { rate_limits: [{ name: "calls", quota: 9, window: "60s" }] };
  succeeded(await suite.rest("PATCH", `${paths.actors}/${encodeURIComponent(name)}?update_mask=rate_limits`, limits));
  await verify(suite.rest, secret);
  return { name, keyId, secret };
}

test("stored payloads are text on every page that shows them", async () => {
  const stored: Stored[] = [];
  for (const [index, payload] of PAYLOADS.entries()) stored.push(await store(payload, index));
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys");
  const { expectHarmless } = await guard(page);
  // The list has all of them.
  for (const [index, { name, keyId, secret }] of stored.entries()) {
    if (index % 3 !== 0) continue;
    await go(page, `/keys/${keyId}`);
    await expect.poll(() => heading(page).textContent()).toBe(name);
    expect(await page.title()).toBe(`${name} · Keyhold`.replaceAll(/[\t\n\f\r ]+/g, " ").trim());
    await page.getByRole("region", { name: "Changes" }).or(page.getByRole("table")).first().waitFor();
    await expectHarmless(name);
    if (index % 9 !== 0) continue;
    await page.getByRole("link", { name, exact: true }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/console/actors/${encodeURIComponent(name)}`);
    expect(await heading(page).textContent()).toBe(name);
    await expectHarmless(`the actor ${name}`);
    await go(page, `/webhooks/p${index}`);
    await page.getByText(name, { exact: true }).waitFor();
    await expectHarmless(`the endpoint of ${name}`);
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Filter" }).waitFor();
    await expectHarmless(`the form of the endpoint of ${name}`);
    await page.keyboard.press("Escape");
    await go(page, "/verify");
    await page.getByLabel("Credential").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("table").waitFor();
    await expectHarmless(`the explanation of ${name}`);
  }
  for (const path of ["/", "/keys", "/actors", "/usage?by=actor", "/usage?by=key", "/audit", "/webhooks"]) {
    await go(page, path);
    await settled(page);
    // Usage is recorded within 15 s.
    await expect
      .poll(
        async () => {
          if (path.startsWith("/usage")) await page.reload();
          await settled(page);
          return page.getByRole("row").count();
        },
        { interval: 1_000 },
      )
      .toBeGreaterThan(1);
    await expectHarmless(path);
    // Long texts hide no other column.
    const { x = 0, width = 0 } = (await page.getByRole("columnheader").nth(1).boundingBox()) ?? {};
    expect([path, x > 0 && x + width < 1280]).toEqual([path, true]);
  }
  await go(page, `/audit?filter=${encodeURIComponent('call_id="p0"')}`);
  await page.getByRole("row").nth(1).getByRole("link").first().click();
  await page
    .getByText(PAYLOADS[0] ?? "", { exact: true })
    .first()
    .waitFor();
  await expectHarmless("an event");
});

test("addresses of the console reflect nothing, lead nowhere else, and change nothing", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys");
  suite.expectMessages(/status of 4\d\d/);
  const { expectHarmless } = await guard(page);
  const text = encodeURIComponent(`"><img src=x onerror=window.__pwned=1>`);
  for (const path of [
    ...["/keys?filter=", "/audit?live=on&filter=", "/actors?actor=", "/usage?by=key&actor=", "/webhooks/", "/keys/"],
    ...[
      "/actors/",
      "/audit/",
      "/",
      "/keys/?filter=a&filter=",
      "/usage?period=",
      "/keys?open=revoke&confirm=yes&filter=",
    ],
  ]) {
    await go(page, `${path}${text}`);
    await expect.poll(() => page.url()).toContain(text.slice(-20));
    await settled(page);
    await expectHarmless(path);
  }
  for (const path of [
    ...["//evil.example", "//evil.example/..", "/%2F%2Fevil.example", "/%5C%5Cevil.example", "/\\evil.example"],
    ...[
      "/https:%2F%2Fevil.example",
      "/javascript:window.__pwned=1",
      "/javascript%3Awindow.__pwned=1",
      "/%0d%0aLocation:x",
    ],
    ...["/?next=https://evil.example&redirect=//evil.example#https://evil.example", "/keys//evil.example"],
  ]) {
    await page.goto(`${suite.server.url}/console${path}`);
    await page.getByRole("main").waitFor();
    await expectHarmless(path);
  }
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await expect.poll(() => page.url()).toBe(`${suite.server.url}/console/keys`);
});

/** Serves a hostile page, on another port of the same site and by another name. Returns its two addresses. */
async function serveHostile(html: string): Promise<readonly string[]> {
  const server = createServer((_request, response) => response.setHeader("content-type", "text/html").end(html));
  const port = await listenLocally(server);
  onTestFinished(() => void server.close());
  return [`http://127.0.0.1:${port}/`, `http://localhost:${port}/`];
}

test("a page of another origin cannot frame, read, script or change anything", async () => {
  const { keyId } = await issue(suite.rest, { name: "victim" });
  const { url } = suite.server;
  const revoke = `${url}/console/api/keyhold.v2alpha1.ApiKeysService/RevokeApiKey`;
  const session = `${url}/console/session`;
  const body = JSON.stringify({ keyId });
  const hostile = await serveHostile(`<!doctype html><title>hostile</title>
    <iframe name=framed src="${url}/console/keys"></iframe>
    <iframe name=sink></iframe>
    <form id=text method=post target=sink enctype=text/plain action="${revoke}"><input name='${body.slice(0, -1)},"a":"' value='"}'></form>
    <form id=url method=post target=sink action="${revoke}"><input name=keyId value=${keyId}></form>
    <form id=multipart method=post target=sink enctype=multipart/form-data action="${revoke}"><input name=keyId value=${keyId}></form>
    <form id=session method=post target=sink action="${session}"></form>
    <form id=get target=sink action="${revoke}"><input name=connect value=v1><input name=encoding value=json><input name=message value='${body}'></form>
    <a id=link href="${url}/console/keys/${keyId}?open=revoke&confirm=victim">link</a>`);
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys");
  suite.expectMessages(/.*/);
  const isActive = async () => (await suite.rest("GET", `${paths.keys}/${keyId}`)).body.status === "KEY_STATUS_ACTIVE";
  for (const address of hostile) {
    const answers: number[] = [];
    page.on("response", (response) => {
      if ([revoke, session].includes(response.url()) && response.request().method() === "POST")
        answers.push(response.status());
    });
    await page.goto(address);
    await expect.poll(() => page.frames().map((frame) => frame.url())).toContain("chrome-error://chromewebdata/");
    expect(page.frames().filter((frame) => frame.url().startsWith(url))).toEqual([]);
    const outcomes = await page.evaluate(
      async ([revoke, session, body, icon]) => {
        const json = { "content-type": "application/json", "connect-protocol-version": "1" };
        const all = { method: "POST", credentials: "include" } as const;
        const attempts = [
          fetch(revoke, { ...all, body, headers: json }),
          fetch(revoke, { ...all, body, headers: { "content-type": "text/plain" } }),
          fetch(revoke, { ...all, body, headers: { "content-type": "text/plain" }, mode: "no-cors" }),
          fetch(revoke, { ...all, body: new Blob([body], { type: "application/json" }) }),
          fetch(revoke, { ...all, body: new Blob([body]), mode: "no-cors" }),
          fetch(session, { ...all, mode: "no-cors" }),
          fetch(session, { method: "DELETE", credentials: "include" }),
          fetch(session, { ...all, headers: { authorization: "Bearer attacker" } }),
          fetch(icon, { credentials: "include" }),
          fetch(icon, { credentials: "include", mode: "no-cors" }),
        ];
        // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
        (globalThis as any).navigator.sendBeacon(revoke, body);
        return (await Promise.allSettled(attempts)).map((outcome) =>
          outcome.status === "fulfilled" ? outcome.value.type : "failed",
        );
      },
      [revoke, session, body, `${url}/console/icon.svg`] as const,
    );
    // No answer can be read; the icon and the errors of the console are withheld even as opaque ones.
    expect(outcomes.filter((outcome) => outcome !== "failed" && outcome !== "opaque")).toEqual([]);
    expect(outcomes.at(-1)).toBe("failed");
    for (const id of ["text", "url", "multipart", "session", "get"])
      await page.evaluate((form) => {
        // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
        (globalThis as any).document.getElementById(form).submit();
      }, id);
    const seen = await page.evaluate(async (target) => {
      // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
      const window = globalThis as any;
      const script = window.document.createElement("script");
      script.src = `${target}/icon.svg`;
      const loaded = await new Promise((resolve) => {
        script.onload = () => resolve("loaded");
        script.onerror = () => resolve("failed");
        window.document.head.append(script);
      });
      return { loaded, cookies: window.document.cookie };
    }, `${url}/console`);
    expect(seen).toEqual({ loaded: "failed", cookies: "" });
    await expect.poll(() => answers.length).toBeGreaterThanOrEqual(3);
    expect(answers.filter((status) => status !== 403)).toEqual([]);
    expect(await isActive()).toBe(true);

    // An opened window is out of reach (Cross-Origin-Opener-Policy), and an address alone changes nothing.
    const [popup] = await Promise.all([
      page.context().waitForEvent("page"),
      page.evaluate((target) => {
        // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
        const window = globalThis as any;
        window.opened = window.open(target);
      }, `${url}/console/keys`),
    ]);
    await heading(popup).waitFor();
    expect(await popup.evaluate("window.opener")).toBe(null);
    await expect.poll(() => page.evaluate("window.opened.closed")).toBe(true);
    await popup.close();
    await page.locator("#link").click();
    await page.getByRole("heading", { level: 1, name: "victim" }).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await isActive()).toBe(true);
  }
  // The session is still there.
  await page.goto(`${url}/console/keys`);
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
});

const signInForm = (page: Page) => page.getByRole("heading", { level: 1, name: "Sign in" });

async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Session and settings" }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signInForm(page).waitFor();
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByRole("textbox", { name: "Admin token" }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await signInForm(page).waitFor({ state: "detached" });
}

/** Returns whether a text has been in the document at any time since the last load. */
async function watch(page: Page, text: string): Promise<() => Promise<unknown>> {
  await page.addInitScript((sought) => {
    // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
    const window = globalThis as any;
    const look = () => {
      if (window.document.documentElement?.textContent.includes(sought)) window.__seen = true;
    };
    new window.MutationObserver(look).observe(window.document, { subtree: true, childList: true, characterData: true });
  }, text);
  return () => page.evaluate("window.__seen === true");
}

test("signing out ends the session in every tab, and nothing of it can be seen again", async () => {
  const { keyId } = await issue(suite.rest, { name: "confidential name" });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/webhooks");
  suite.expectMessages(/status of 40[14]/);
  const wasSeen = await watch(page, "confidential name");
  await page.goto(`${suite.server.url}/console/keys`);
  await page.getByRole("link", { name: "confidential name" }).click();
  await page.getByRole("heading", { level: 1, name: "confidential name" }).waitFor();
  const other = await suite.openTab(page, `/keys/${keyId}`);
  await other.getByRole("heading", { level: 1, name: "confidential name" }).waitFor();
  await signOut(page);
  await signInForm(other).waitFor();
  for (const tab of [page, other]) {
    expect(await tab.title()).toBe("Sign in · Keyhold");
    expect((await tab.content()).includes("confidential name")).toBe(false);
  }
  expect(await page.context().cookies()).toEqual([]);
  for (const move of [() => page.reload(), () => page.goBack(), () => page.goBack(), () => page.goForward()]) {
    await move();
    await signInForm(page).waitFor();
    expect(await wasSeen()).toBe(false);
  }

  // Another person in the same browser sees what that person may see.
  const { secret } = await issue(suite.rest, { scopes: ["keyhold:admin"], restricted_to_actor_ids: ["team_b"] });
  await issue(suite.rest, { name: "key of team b", actor_id: "team_b" });
  await page.goto(`${suite.server.url}/console/keys`);
  await signIn(page, secret);
  await page.getByRole("link", { name: "key of team b" }).waitFor();
  // The other tab follows.
  await other.getByRole("main").waitFor();
  await signInForm(other).waitFor({ state: "detached" });
  expect(await wasSeen()).toBe(false);
  expect((await other.content()).includes("confidential name")).toBe(false);
});

test("a session whose token is revoked meanwhile ends at the next click, and says why", async () => {
  const { keyId, secret } = await issue(suite.rest, { scopes: ["keyhold:admin"] });
  const page = await suite.visit({ token: secret }, "/keys");
  suite.expectMessages(/status of 401/);
  await heading(page).waitFor();
  await suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {});
  await page.getByRole("link", { name: "Webhooks" }).click();
  await signInForm(page).waitFor();
  expect(await page.getByRole("status").innerText()).toMatch(/Your session has ended\s+.*the key is revoked$/);
  await page.reload();
  await page.getByText("the key is revoked").waitFor();
  await signIn(page, suite.token("keyhold:webhooks"));
  await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
});

test("a session whose token is restricted meanwhile is offered no more than it may do", async () => {
  const { keyId: victim } = await issue(suite.rest, { name: "victim" });
  const { keyId, secret } = await issue(suite.rest, { scopes: ["keyhold:keys.read", "keyhold:keys.disable"] });
  const page = await suite.visit({ token: secret }, `/keys/${victim}`);
  suite.expectMessages(/status of 403/);
  await page.getByRole("button", { name: "Disable" }).click();
  const scopes = ["keyhold:keys.read"];
  succeeded(await suite.rest("PATCH", `${paths.issued}/${keyId}?update_mask=scopes`, { scopes }));
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await dialog.getByRole("alert").getByText("keyhold:keys.disable").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Disable" }).waitFor({ state: "detached" });
  expect(succeeded(await suite.rest("GET", `${paths.keys}/${victim}`)).status).toBe("KEY_STATUS_ACTIVE");
});

test("the browser keeps no page of the console for going back", async () => {
  // Playwright disables this cache by default.
  const browser = await startChromium({ ignoreDefaultArgs: ["--disable-back-forward-cache"] });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const { url } = suite.server;
  await page.goto(`${url}/console/keys`);
  await signIn(page, suite.token("keyhold:admin"));
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  await page.evaluate("window.isKept = true");
  await page.goto(`${url}/openapi.json`);
  await page.goBack();
  expect(await page.evaluate("window.isKept")).toBeUndefined();
  const reasons = "JSON.stringify(performance.getEntriesByType('navigation')[0].notRestoredReasons)";
  expect(await page.evaluate(reasons)).toContain("response-cache-control-no-store");
});
