import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleSettings, type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { issue } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

let oidc: OidcIssuer;
beforeAll(async () => {
  oidc = await startOidcIssuer();
});
afterAll(() => oidc.close());

const settings = (more: Record<string, string> = {}) => ({ ...consoleSettings(oidc), ...more });
const suite = useConsole(() => settings());

/** The responses to calls without a session, and the icon and fonts that the pages of the issuer lack here. */
const EXPECTED = [
  /status of 40[134]/,
  /ERR_(?:NAME_NOT_RESOLVED|INTERNET_DISCONNECTED|CONNECTION|TUNNEL|PROXY|TIMED_OUT)/,
];

const linkTo = (page: Page) => page.getByRole("link", { name: /^Sign in with 127\.0\.0\.1:\d+$/ });
const signInPage = (page: Page) => page.getByRole("heading", { name: "Sign in", exact: true });

async function signIn(page: Page): Promise<void> {
  await linkTo(page).click();
  await page.getByPlaceholder("Enter any login").fill("ada");
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
}

async function signOutAtIssuer(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await signInPage(page).waitFor();
  expect(page.url()).toBe(`${suite.server.url}/console`);
}

test("a person signs in at the issuer, returns to the page, and signs out of both", async () => {
  suite.expectMessages(...EXPECTED);
  const page = await suite.visit({ token: null }, "/keys?filter=status%3Dactive");
  await signIn(page);
  await page.getByRole("button", { name: /^ada/ }).waitFor();
  expect(page.url()).toBe(`${suite.server.url}/console/keys?filter=status%3Dactive`);
  expect(await page.evaluate("document.cookie")).toBe("");
  const tab = await suite.openTab(page, "/keys");
  await tab.getByRole("button", { name: /^ada/ }).waitFor();
  await page.getByRole("button", { name: /^ada/ }).click();
  await page.getByText("The session ends at the latest").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await signInPage(tab).waitFor();
  await signOutAtIssuer(page);
  await page.goto(`${suite.server.url}/console/keys`);
  await linkTo(page).click();
  await page.getByPlaceholder("Enter any login").waitFor();
});

test("a person who cancels learns why the sign-in failed, and can sign in by an admin token", async () => {
  suite.expectMessages(...EXPECTED);
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit({ token: null, colorScheme, width: 360 }, "/keys");
    await linkTo(page).click();
    await page.getByRole("link", { name: "[ Cancel ]" }).click();
    await page.getByRole("alert").getByText("denied access, or you cancelled").waitFor();
    await expectAccessible(page);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    await page.getByRole("textbox", { name: "Admin token" }).fill(suite.token("keyhold:keys.read"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe("");
  }
});

test("text in a link is not shown on the page", async () => {
  suite.expectMessages(...EXPECTED);
  const page = await suite.visit({ token: null }, "?signin_error=%3Cb%3Ecall+me%3C/b%3E");
  await linkTo(page).waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  expect(await page.locator("body").innerText()).not.toContain("call me");
  const known = await suite.visit({ token: null, locale: "de" }, "?signin_error=unavailable");
  await known.getByRole("alert").getByText("nicht erreichbar").waitFor();
});

test("a person without a scope of Keyhold learns it, and can sign out", async () => {
  suite.expectMessages(...EXPECTED);
  await suite.server.restart(settings({ KEYHOLD_AUTH: "oidc", KEYHOLD_CONSOLE_OIDC_SCOPES: "" }));
  const page = await suite.visit({ token: null }, "/keys");
  await linkTo(page).waitFor();
  expect(await page.getByRole("textbox", { name: "Admin token" }).count()).toBe(0);
  await signIn(page);
  await page.getByText("You may not use this console").waitFor();
  await expectAccessible(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await signOutAtIssuer(page);
});

test("the session ends when the server no longer accepts the access token, and when it expires", async () => {
  suite.expectMessages(...EXPECTED);
  await using shortLived = Object.assign(await startOidcIssuer({ ttl: 2 }), {
    [Symbol.asyncDispose]: () => shortLived.close(),
  });
  const short = settings({ KEYHOLD_OIDC_ISSUER: shortLived.issuer });
  await suite.server.restart(short);
  await issue(suite.rest, { name: "deploy bot" });
  const page = await suite.visit({ token: null }, "/keys");
  await signIn(page);
  await page.getByRole("link", { name: "deploy bot" }).waitFor();
  await suite.server.restart(settings());
  await page.goto(`${suite.server.url}/console/keys`);
  await page.getByText("the access token is not valid").waitFor();
  await suite.server.restart(short);
  // Browsers send a cookie to every port of its host.
  await page.goto(`${suite.server.url}/console/keys`);
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByRole("heading", { level: 1 }).waitFor();
      return page.getByText("the access token has expired").count();
    })
    .toBe(1);
  await page.getByText("Your session has ended").waitFor();
});
