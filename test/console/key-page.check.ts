import { createServer } from "node:http";
import type { FrameLocator, Page, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { succeeded } from "../support/conformance.ts";
import { listenLocally } from "../support/listen.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";
import { inspect } from "./inspect.ts";

const BRAND = "Example “Billing” & more";
const COLOR = "#ffd400";

/** A page of an application of another site, with the key page in a frame that is as high as the key page says. */
const application = createServer(({ url }, response) => {
  const source = new URL(url ?? "", "http://localhost").searchParams.get("page") ?? "";
  response.setHeader("content-type", "text/html");
  response.end(`<!doctype html><title>Application</title><link rel="icon" href="data:,">
    <h1>Application</h1><iframe title="keys" src="${source}" style="width: 100%; height: 100px; border: 0"></iframe>
    <script>
      const received = [];
      addEventListener("message", ({ data }) => {
        received.push(data.type);
        if (data.type === "keyhold-key-page:height") document.querySelector("iframe").style.height = data.height + "px";
      });
    </script>`);
});

let applicationUrl = "";
beforeAll(async () => {
  // Another site than 127.0.0.1.
  applicationUrl = `http://localhost:${await listenLocally(application)}`;
});
afterAll(() => application.close());

const suite = useConsole(() => ({
  KEYHOLD_KEY_PAGES_NAME: BRAND,
  KEYHOLD_KEY_PAGES_COLOR: COLOR,
  KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: applicationUrl,
}));

const PERMISSIONS = ["CREATE", "ROTATE", "REVOKE", "VIEW_USAGE"] as const;

interface Session {
  readonly actor: string;
  readonly permissions?: readonly (typeof PERMISSIONS)[number][];
  readonly scopes?: readonly string[];
  readonly fields?: Json;
}

/** Creates a session of the key page. Returns the link that opens it. */
async function linkOf({ actor, permissions = PERMISSIONS, scopes = [], fields = {} }: Session): Promise<string> {
  const body = {
    ...{ actor_id: actor, allowed_scopes: scopes, ...fields },
    permissions: permissions.map((permission) => `KEY_PAGE_PERMISSION_${permission}`),
  };
  const call = suite.as(suite.token("keyhold:key-pages"));
  return succeeded(await call("POST", "/v2alpha1/admin/keyPageSessions", body)).url;
}

const open = (session: Session) => linkOf(session).then((link) => suite.visit({ token: null }, link));

const button = (page: Page | FrameLocator, name: string) => page.getByRole("button", { name, exact: true });
const cardOf = (page: Page | FrameLocator, name: string) => page.getByRole("article", { name, exact: true });
const heading = (page: Page | FrameLocator, name: string) => page.getByRole("heading", { level: 1, name });
const secretIn = (page: Page) => page.getByRole("dialog").locator("pre").first().innerText();
const closed = (page: Page) => page.getByRole("dialog").waitFor({ state: "detached" });

test("an owner creates a key, uses it, rotates it with a grace period and revokes it", async () => {
  const scopes = ["invoices:read", "invoices:write"];
  const fields = { max_ttl: "90d", return_url: "https://app.example/settings" };
  const link = await linkOf({ actor: "owner_1", scopes, fields });
  const page = await suite.visit({ token: null }, link);
  await page.getByText("There are no keys yet.").waitFor();
  const { find } = await inspect(page);
  const token = new URL(link).hash.slice(1);
  await expect.poll(() => find({ token })).toEqual([]);
  expect(page.url()).toBe(`${suite.server.url}/keys`);
  expect(await page.title()).toBe(`Your API keys · ${BRAND}`);
  await page.getByText("Keys of owner_1").waitFor();
  const back = page.getByRole("link", { name: "Back to app.example" });
  expect(await back.getAttribute("href")).toBe(fields.return_url);

  await button(page, "New key").click();
  await page.getByRole("textbox", { name: "Name" }).fill("build server");
  await page.getByRole("checkbox", { name: "invoices:read" }).check();
  const lifetimes = page.getByRole("combobox", { name: "The key expires in" });
  expect(await lifetimes.getByRole("option").allInnerTexts()).toEqual(["1 day", "7 days", "30 days", "90 days"]);
  await button(page, "Create key").click();
  const secret = await secretIn(page);
  expect(await page.getByRole("dialog").locator("pre").count()).toBe(1);
  const accepted = { is_valid: true, actor_id: "owner_1", scopes: ["invoices:read"] };
  expect(await verify(suite.rest, secret)).toMatchObject(accepted);
  await button(page, "Done").click();
  await closed(page);
  await expect.poll(() => find({ secret })).toEqual([]);

  const card = cardOf(page, "build server");
  await button(page, "Rotate the secret: build server").click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByRole("dialog", { name: "The key has a new secret" }).waitFor();
  const next = await secretIn(page);
  await button(page, "Done").click();
  await closed(page);
  await card.getByText("not used").waitFor();
  await expect.poll(() => find({ secret, next })).toEqual([]);
  expect(await verify(suite.rest, secret)).toMatchObject(accepted);
  expect(await verify(suite.rest, next)).toMatchObject(accepted);
  // The page reads it again; a use is recorded within 15 s.
  await card.getByText("not used").waitFor({ state: "detached" });
  await button(page, "End the grace period: build server").click();
  await page.getByRole("dialog").getByRole("button", { name: "End the grace period" }).click();
  await closed(page);
  await card.getByRole("table").waitFor({ state: "detached" });
  expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: false });

  await button(page, "Show the usage: build server").click();
  await card.getByText(/[1-9] accepted, \d rejected/).waitFor();
  await button(page, "Revoke: build server").click();
  await page.getByRole("combobox", { name: "Reason" }).selectOption("The key is compromised");
  expect(await page.getByRole("combobox", { name: "Reason" }).getByRole("option").count()).toBe(3);
  await page.getByRole("textbox", { name: "Type build server to confirm" }).fill("build server");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await card.getByText("The service rejects this key. That cannot be undone.").waitFor();
  await card.getByText("The key is compromised").waitFor();
  expect(await verify(suite.rest, next)).toMatchObject({ is_valid: false });
});

test("a link opens the page once, and the session lasts until the owner signs out", async () => {
  suite.expectMessages(/status of 40[01]/);
  const link = await linkOf({ actor: "owner_2", fields: { return_url: "https://app.example/" } });
  const page = await suite.visit({ token: null }, link);
  await page.getByText("There are no keys yet.").waitFor();
  await page.reload();
  await page.getByText("There are no keys yet.").waitFor();
  for (const used of [link, `${suite.server.url}/keys#never-a-link`, `${suite.server.url}/keys#a,b`]) {
    const again = await suite.visit({ token: null }, used);
    await heading(again, "This link can no longer be used").waitFor();
    expect(await again.getByRole("button").count()).toBe(0);
    await expectAccessible(again);
  }
  // A link that is pasted into the address of the open page.
  await page.evaluate((hash) => {
    // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
    (globalThis as any).location.hash = hash;
  }, new URL(link).hash);
  await heading(page, "This link can no longer be used").waitFor();
  await page.reload();
  await button(page, "Sign out").click();
  await heading(page, "Your session has ended").waitFor();
  await page.getByRole("link", { name: "Back to app.example" }).waitFor();
  await page.reload();
  await heading(page, "There is no session in this browser").waitFor();
});

test("what the session does not permit is not offered", async () => {
  const actor = "owner_3";
  await issue(suite.rest, { name: "plain", actor_id: actor, scopes: ["a"] });
  await issue(suite.rest, { name: "other scope", actor_id: actor, scopes: ["a", "b"] });
  await issue(suite.rest, { name: "admin token", actor_id: actor, scopes: ["keyhold:verify"] });
  const disabled = await issue(suite.rest, { name: "stopped", actor_id: actor, scopes: ["a"] });
  succeeded(await suite.rest("POST", `${paths.keys}/${disabled.keyId}:disable`, { reason: "unpaid" }));
  await issue(suite.rest, { name: "of another", actor_id: "owner_4" });
  const names = ["stopped", "admin token", "other scope", "plain"];
  const expected = {
    CREATE: [["New key"], [], [], [], []],
    ROTATE: [[], ["Rotate the secret"], [], [], ["Rotate the secret"]],
    REVOKE: [[], ["Revoke"], [], ["Revoke"], ["Revoke"]],
    VIEW_USAGE: [[], ...names.map(() => ["Show the usage"])],
  } as const;
  for (const permissions of [[], ...PERMISSIONS.map((permission) => [permission]), PERMISSIONS]) {
    const page = await open({ actor, permissions, scopes: ["a"] });
    await cardOf(page, "plain").waitFor();
    expect(await page.getByRole("article").getByRole("heading").allInnerTexts()).toEqual(names);
    const offered = [
      (await page.getByRole("main").getByRole("button").allInnerTexts()).filter((name) => name === "New key"),
      ...(await Promise.all(names.map((name) => cardOf(page, name).getByRole("button").allInnerTexts()))),
    ];
    const wanted = offered.map((_, index) => permissions.flatMap((permission) => expected[permission][index] ?? []));
    expect({ permissions, offered }).toEqual({ permissions, offered: wanted });
  }
  const page = await open({ actor, permissions: [] });
  const card = cardOf(page, "stopped");
  await card.getByText("The service has disabled this key").waitFor();
  await card.getByText("unpaid").waitFor();
});

test("the session ends when its creator is revoked", async () => {
  suite.expectMessages(/status of 401/);
  const creator = await issue(suite.rest, { scopes: ["keyhold:key-pages"] });
  const body = { actor_id: "owner_5", return_url: "https://app.example/", permissions: ["KEY_PAGE_PERMISSION_CREATE"] };
  const { url } = succeeded(await suite.as(creator.secret)("POST", "/v2alpha1/admin/keyPageSessions", body));
  const page = await suite.visit({ token: null }, url);
  await page.getByText("There are no keys yet.").waitFor();
  succeeded(await suite.rest("POST", `${paths.keys}/${creator.keyId}:revoke`, {}));
  await button(page, "New key").click();
  await page.getByRole("textbox", { name: "Name" }).fill("too late");
  await button(page, "Create key").click();
  await heading(page, "Your session has ended").waitFor();
  await page.getByRole("link", { name: "Back to app.example" }).waitFor();
});

/** Opens a link in a browser whose requests are intercepted. */
async function openWith(
  link: string,
  path: string,
  handle: (route: Route, count: number) => Promise<void>,
): Promise<Page> {
  const other = await suite.visit({ token: null }, `${suite.server.url}/keys/icon.svg`);
  let count = 0;
  await other.context().route(`**/keys/${path}`, (route) => handle(route, count++));
  return suite.openTab(other, link);
}

const WHO_AM_I = "api/keyhold.v2alpha1.CallersService/WhoAmI";

const noSession = (route: Route) =>
  route.fulfill({
    ...{ status: 401, headers: { "x-keyhold-session": "none" } },
    json: { code: "unauthenticated", message: "there is no session" },
  });

test("a link is tried again after a failure, and opens the page once the server answers", async () => {
  suite.expectMessages(/Failed to load resource/);
  const link = await linkOf({ actor: "owner_10" });
  const page = await openWith(link, "session", (route, count) => (count < 2 ? route.abort() : route.continue()));
  for (let attempt = 0; attempt < 2; attempt++) {
    await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
    await expectAccessible(page);
    await button(page, "Try again").click();
  }
  await page.getByText("There are no keys yet.").waitFor();
});

test("a page of which a file cannot be loaded says that it has failed", async () => {
  suite.expectMessages(/Failed to load resource/, /Failed to fetch dynamically imported module/);
  await issue(suite.rest, { name: "api server", actor_id: "owner_13" });
  const link = await linkOf({ actor: "owner_13" });
  const page = await openWith(link, "assets/key-usage-*.js", (route) => route.abort());
  await button(page, "Show the usage: api server").click();
  await page.getByRole("alert").getByText("This page has failed. Reload it.").waitFor();
  await expectAccessible(page);
});

test("a browser that does not store the session is named as the cause", async () => {
  suite.expectMessages(/status of 401/);
  const page = await openWith(await linkOf({ actor: "owner_11" }), WHO_AM_I, noSession);
  await heading(page, "The browser has not stored the session").waitFor();
  await expectAccessible(page);
});

test("the page says that the session has ended when it does, although nobody uses the page", async () => {
  suite.expectMessages(/status of 401/);
  const page = await openWith(await linkOf({ actor: "owner_12" }), WHO_AM_I, async (route, count) => {
    if (count > 0) return noSession(route);
    const expireTime = new Date(Date.now() + 3_000).toISOString();
    const permittedRpcs = ["keyhold.v2alpha1.ApiKeysService/ListApiKeys"];
    await route.fulfill({ json: { expireTime, permittedRpcs, keyPageSession: { actorId: "owner_12" } } });
  });
  await page.getByText("There are no keys yet.").waitFor();
  await heading(page, "Your session has ended").waitFor();
});

test("the page is accessible with any brand, in light and dark colors, on a phone and in German", async () => {
  const scopes = ["read", `scope:${"x".repeat(200)}`];
  await issue(suite.rest, { name: "long_name_".repeat(20), actor_id: "owner_6", scopes });
  for (const colorScheme of ["light", "dark"] as const) {
    const link = await linkOf({ actor: "owner_6", scopes, fields: { return_url: "https://app.example/" } });
    const first = await suite.visit({ token: null, width: 360, colorScheme, locale: "de" }, link);
    await heading(first, "Ihre API-Schlüssel").waitFor();
    // The contrast of others: brand-theme.test.ts.
    for (const color of [COLOR, "#000000", ""]) {
      await first.context().unroute("**/keys");
      await first.context().route("**/keys", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace(`"${COLOR}"`, `"${color}"`) });
      });
      const page = await suite.openTab(first, `${suite.server.url}/keys`);
      await page.getByRole("article").waitFor();
      await expectAccessible(page);
      expect(await page.evaluate("document.documentElement.scrollWidth"), color).toBe(360);
      await button(page, "Neuer Schlüssel").click();
      await page.getByRole("checkbox").first().check();
      await expectAccessible(page);
      await page.keyboard.press("Escape");
      await closed(page);
      await page.close();
    }
  }
});

test("the page works with the keyboard alone", async () => {
  const page = await open({ actor: "owner_7", scopes: ["read"] });
  await page.getByText("There are no keys yet.").waitFor();
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await button(page, "New key").focus();
  await press("Enter");
  await page.getByRole("textbox", { name: "Name" }).waitFor();
  await page.keyboard.type("by keyboard");
  await press("Tab", "Space", "Tab", "Tab", "Tab", "Tab", "Enter");
  await page.getByRole("dialog", { name: "The key is created" }).waitFor();
  await button(page, "Done").focus();
  await press("Enter");
  await closed(page);
  await cardOf(page, "by keyboard").getByText("read", { exact: true }).waitFor();
});

test("the first load is small, and names nothing below /console", async () => {
  const page = await open({ actor: "owner_8" });
  await page.getByText("There are no keys yet.").waitFor();
  await page.waitForLoadState("networkidle");
  const loaded = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .concat(performance.getEntriesByType("navigation"))
      .map((entry) => ({
        path: new URL(entry.name).pathname,
        size: (entry as PerformanceResourceTiming).encodedBodySize,
      })),
  );
  expect(loaded.filter(({ path }) => !path.startsWith("/keys"))).toEqual([]);
  const total = loaded.reduce((sum, { size }) => sum + size, 0);
  expect(total).toBeGreaterThan(50_000);
  expect(total).toBeLessThan(200_000);
});

test("in a frame of another site, the page reports its height and the end of the session", async () => {
  suite.expectMessages(/status of 401/);
  const creator = await issue(suite.rest, { scopes: ["keyhold:key-pages"] });
  for (let index = 0; index < 60; index++) await issue(suite.rest, { name: `key ${index}`, actor_id: "owner_9" });
  const body = { actor_id: "owner_9", return_url: "https://app.example/", permissions: ["KEY_PAGE_PERMISSION_REVOKE"] };
  const { url } = succeeded(await suite.as(creator.secret)("POST", "/v2alpha1/admin/keyPageSessions", body));
  const page = await suite.visit({ token: null }, `${applicationUrl}/?${new URLSearchParams({ page: url })}`);
  const frame = page.frameLocator("iframe");
  await cardOf(frame, "key 59").waitFor();
  expect(await frame.getByRole("article").count()).toBe(50);
  await button(frame, "Load more").click();
  await cardOf(frame, "key 0").waitFor();
  const height = () => page.locator("iframe").evaluate((element) => element.getBoundingClientRect().height);
  const hidden = () => frame.locator("html").evaluate((element) => element.scrollHeight - element.clientHeight);
  await expect.poll(hidden).toBe(0);
  expect(await height()).toBeGreaterThan(5_000);
  expect(await button(frame, "Sign out").count()).toBe(0);
  expect(await frame.getByRole("link", { name: "Back to app.example" }).getAttribute("target")).toBe("_top");
  // The dialog is where the person looks, and completely visible.
  await button(frame, "Revoke: key 0").click();
  await frame.getByRole("textbox", { name: "Type key 0 to confirm" }).fill("key 0");
  const { y = -1, height: high = 0 } = (await frame.getByRole("dialog").boundingBox()) ?? {};
  expect(y).toBeGreaterThan(0);
  expect(y + high).toBeLessThan(page.viewportSize()?.height ?? 0);
  await frame.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await cardOf(frame, "key 0").getByText("That cannot be undone.").waitFor();
  succeeded(await suite.rest("POST", `${paths.keys}/${creator.keyId}:revoke`, {}));
  await button(frame, "Revoke: key 1").click();
  await frame.getByRole("textbox", { name: "Type key 1 to confirm" }).fill("key 1");
  await frame.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await heading(frame, "Your session has ended").waitFor();
  await expect.poll(height).toBeLessThan(600);
  expect(await page.evaluate("received")).toContain("keyhold-key-page:ended");
});
