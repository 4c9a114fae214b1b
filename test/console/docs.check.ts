import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { session } from "../../console/texts/session.ts";
import { expectAccessible, renderedDocs, useConsole, type Visitor } from "./console.ts";

/** The page at /docs, which must look like a page of the console. */
const suite = useConsole();

const STYLE = readFileSync(new URL("../../src/transport/services/viewer/style.css", import.meta.url), "utf8");

/** The variables of the console's theme that the page has too. */
const VARIABLES = [...new Set(STYLE.match(/--mantine-[\w-]+(?=:)/g))];

const SCHEMES = ["light", "dark"] as const;

/** What axe finds in the elements of Swagger UI, which a stylesheet cannot change. */
const OF_SWAGGER_UI = ["heading-order", "label", "nested-interactive", "region", "select-name"];

const urlOfDocs = () => `${suite.server.url}/docs`;

/** Opens the page with an operation that has a body, responses and code. */
async function openOperation(visitor: Omit<Visitor, "token">): Promise<{ page: Page; operation: Locator }> {
  const page = await renderedDocs(await suite.visit({ token: null, reducedMotion: "reduce", ...visitor }, urlOfDocs()));
  const operation = page.locator(".opblock", { hasText: "Issues a key" });
  await operation.locator(".opblock-summary-control").click();
  await operation.locator(".code-samples code").waitFor();
  await operation.locator(".response code").first().waitFor();
  return { page, operation };
}

const valuesOf = (page: Page) =>
  page.evaluate((names) => {
    const probe = document.body.appendChild(document.createElement("i"));
    const resolve = (name: string) => {
      const property = name.includes("color") ? "color" : "font-family";
      probe.style.setProperty(property, `var(${name})`);
      return getComputedStyle(probe).getPropertyValue(property);
    };
    return Object.fromEntries(names.map((name) => [name, resolve(name)]));
  }, VARIABLES);

/** Returns the looks of the page and of its main button. */
async function looksOf(page: Page, button: Locator) {
  const body = await page.locator("body").evaluate((element) => {
    const { backgroundColor, color, fontFamily, lineHeight } = getComputedStyle(element);
    return { backgroundColor, color, fontFamily, lineHeight };
  });
  const main = await button.evaluate((element) => {
    const { backgroundColor, color, fontFamily, borderRadius } = getComputedStyle(element);
    return { backgroundColor, color, fontFamily, borderRadius };
  });
  const header = await page.locator("header").boundingBox();
  return { body, main, header };
}

const colorsOf = (page: Page) => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme);

test("it looks like the console in light and dark colors", async () => {
  const ofConsole = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys/new");
  const create = ofConsole.getByRole("button", { name: "Create key" });
  await create.waitFor();
  const docs = await renderedDocs(await suite.openTab(ofConsole, urlOfDocs()));
  const authorize = docs.getByRole("button", { name: "Authorize" });
  expect(VARIABLES.length).toBeGreaterThan(10);
  for (const colorScheme of SCHEMES) {
    for (const page of [ofConsole, docs]) await page.emulateMedia({ colorScheme });
    await expect.poll(() => colorsOf(ofConsole)).toBe(colorScheme);
    await expect.poll(() => colorsOf(docs)).toBe(colorScheme);
    expect(await valuesOf(docs)).toEqual(await valuesOf(ofConsole));
    expect(await looksOf(docs, authorize)).toEqual(await looksOf(ofConsole, create));
  }
});

test("it follows the choice of colors in the console, to which it has a link", async () => {
  const admin = { token: suite.token("keyhold:admin"), colorScheme: "light" } as const;
  const docs = await renderedDocs(await suite.visit(admin, urlOfDocs()));
  const expectColors = (expected: (typeof SCHEMES)[number]) => expect.poll(() => colorsOf(docs)).toBe(expected);
  await expectColors("light");
  const ofConsole = await suite.openTab(docs, "/");
  await ofConsole.getByRole("button", { name: session.en.menu }).click();
  const choose = (scheme: keyof typeof session.en.schemes) =>
    ofConsole.getByText(session.en.schemes[scheme], { exact: true }).click();
  await choose("dark");
  await expectColors("dark");
  await docs.reload();
  await expectColors("dark");
  await choose("auto");
  await expectColors("light");
  await docs.emulateMedia({ colorScheme: "dark" });
  await expectColors("dark");
  await choose("light");
  await expectColors("light");
  await docs.getByRole("link", { name: "Console" }).click();
  await docs.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
});

test("it is accessible in light and dark colors, but for the elements of Swagger UI", async () => {
  const { page, operation } = await openOperation({});
  await operation.getByRole("button", { name: "Try it out" }).click();
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await expect.poll(() => colorsOf(page)).toBe(colorScheme);
    await expectAccessible(page, { except: OF_SWAGGER_UI });
  }
});

test("at a width of 360 pixels only code scrolls to the side", async () => {
  const { page, operation } = await openOperation({ width: 360 });
  const widthOf = () => page.evaluate(() => document.documentElement.scrollWidth);
  expect(await widthOf()).toBe(360);
  await operation.getByRole("button", { name: "Try it out" }).click();
  for (const control of [operation.getByLabel("Language"), operation.getByRole("button", { name: "Execute" })]) {
    const box = await control.boundingBox();
    expect((box?.x ?? Number.NaN) + (box?.width ?? Number.NaN)).toBeLessThanOrEqual(360);
  }
  expect(await widthOf()).toBe(360);
});

test("the language of the code is chosen by the keyboard, with a visible focus", async () => {
  const { page, operation } = await openOperation({});
  const language = operation.getByLabel("Language");
  const tabTo = async (locator: Locator) => {
    const isFocused = () => locator.evaluate((element) => element === document.activeElement);
    for (let steps = 0; steps < 20 && !(await isFocused()); steps++) await page.keyboard.press("Tab");
    expect(await isFocused()).toBe(true);
    expect(await locator.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe("solid");
  };
  await operation.getByRole("button", { name: "Try it out" }).focus();
  await tabTo(language);
  const code = operation.locator(".code-samples pre");
  for (const text of ["@keyhold/client", "import requests", "package main", "HttpClient"]) {
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => code.innerText()).toContain(text);
  }
  // With the focus, it scrolls by the keyboard.
  await tabTo(code);
});
