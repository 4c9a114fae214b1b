import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import type { KeyPageElement } from "@keyhold/client/key-page";
import type { FrameLocator, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { createKeyPage } from "../support/key-pages.ts";
import { startChromium } from "../support/programs/chromium.ts";
import { type Json, paths } from "../support/rest.ts";
import { useConsole } from "./console.ts";

/* An application embeds the key page with the element of `@keyhold/client/key-page`. Keyhold is on 127.0.0.1. */

const port = await freePort();
/** Another origin on the site of Keyhold, and another site. */
const [SAME_SITE, OTHER_SITE] = [`http://127.0.0.1:${port}`, `http://localhost:${port}`];
/** An origin that the server does not list. */
const UNLISTED = `http://other.localhost:${port}`;

const suite = useConsole(() => ({ KEYHOLD_KEY_PAGES_FRAME_ANCESTORS: `${SAME_SITE},${OTHER_SITE}` }));

let application: Server;
beforeAll(async () => {
  application = await serveApplication();
});
afterAll(() => application.close());

/** Serves an application that has the element and a strict policy. `/own` posts messages to the page that frames it. */
async function serveApplication(): Promise<Server> {
  const input = join(import.meta.dirname, "../../packages/client/key-page/key-page.ts");
  const build = await rolldown({ input, platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "iife", name: "keyPage", codeSplitting: false });
  await build.close();
  const files: Readonly<Record<string, readonly [type: string, text: string]>> = {
    "/": [
      "text/html",
      `<!doctype html><title>application</title><link rel="icon" href="data:,"><script src="/app.js"></script><body>`,
    ],
    "/app.js": ["text/javascript", `${output[0].code}\nkeyPage.defineKeyPage();`],
    "/own": ["text/html", `<!doctype html><title>own</title><script src="/own.js"></script>`],
    "/own.js": [
      "text/javascript",
      `parent.postMessage({ type: "keyhold-key-page:height", height: 5000 }, "*");
       parent.postMessage({ type: "keyhold-key-page:ended" }, "*");
       parent.postMessage("posted", "*");`,
    ],
  };
  const server = createServer(({ url = "" }, response) => {
    const [type, text] = files[url] ?? ["text/plain", ""];
    const policy = `default-src 'none'; img-src data:; script-src 'self'; frame-src 'self' ${suite.server.url}`;
    response.writeHead(200, { "content-type": type, "content-security-policy": policy });
    response.end(text);
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return server;
}

const linkFor = async (actor_id: string, fields: Json = {}) =>
  (await createKeyPage(suite.rest, { actor_id, ...fields })).url;

/** Opens the application. `window.ended` counts the events of its elements, `window.messages` those that the window received. */
async function openApplication(origin: string): Promise<Page> {
  const page = await suite.visit({ token: null }, "/icon.svg");
  await page.goto(origin);
  await page.evaluate(() => {
    Object.assign(window, { ended: 0, messages: [] });
    document.addEventListener("keyhold-ended", () => window.ended++);
    window.addEventListener("message", ({ data }) => window.messages.push(data));
  });
  return page;
}

declare global {
  /** What the script of the application defines. */
  var keyPage: typeof import("@keyhold/client/key-page");
  interface Window {
    ended: number;
    messages: unknown[];
  }
}

/** Adds the element to the application, or sets the URL of the one that it has. */
async function embed(page: Page, src: string): Promise<FrameLocator> {
  await page.evaluate((src) => {
    const found = document.querySelector<KeyPageElement>("keyhold-key-page");
    const element = found ?? document.body.appendChild(document.createElement("keyhold-key-page"));
    element.src = src;
  }, src);
  return frameOf(page);
}

const frameOf = (page: Page) => page.locator("keyhold-key-page iframe").contentFrame();
const heightOf = async (page: Page) => (await page.locator("keyhold-key-page iframe").boundingBox())?.height ?? 0;
const heading = (frame: FrameLocator, name = "Your API keys") => frame.getByRole("heading", { level: 1, name });
const endedOf = (page: Page) => page.evaluate(() => window.ended);

async function createKey(frame: FrameLocator, name: string): Promise<void> {
  await frame.getByRole("button", { name: "New key" }).click();
  await frame.getByRole("textbox", { name: "Name" }).fill(name);
  await frame.getByRole("button", { name: "Create key" }).click();
  await frame.getByRole("button", { name: "Copy" }).click();
  await frame.getByRole("button", { name: "Copied" }).waitFor();
  await frame.getByRole("button", { name: "Done" }).click();
  await frame.getByText(name, { exact: true }).waitFor();
}

/** Expects the frame to be as high as its document. */
async function expectFitting(page: Page): Promise<void> {
  const content = frameOf(page).locator("html");
  await expect
    .poll(async () => {
      const height = await content.evaluate((html) => html.getBoundingClientRect().height);
      return Math.abs(Math.max(height, 200) - (await heightOf(page)));
    })
    .toBeLessThanOrEqual(1);
}

describe.each([
  ["another origin of the same site", SAME_SITE],
  ["another site", OTHER_SITE],
])("an application on %s", (_, origin) => {
  test("shows the owner their keys, of whom they create one, in a frame as high as the page", async () => {
    const page = await openApplication(origin);
    const actorId = `embedded on ${origin}`;
    const frame = await embed(page, await linkFor(actorId));
    await heading(frame).waitFor();
    await expectFitting(page);
    const before = await heightOf(page);
    for (const name of ["first", "second", "third"]) await createKey(frame, name);
    await expectFitting(page);
    expect(await heightOf(page)).toBeGreaterThan(before);
    const filter = encodeURIComponent(`actor_id="${actorId}"`);
    const { body } = await suite.rest("GET", `${paths.keys}?filter=${filter}`);
    expect(body.api_keys.map(({ name }: Json) => name).sort()).toEqual(["first", "second", "third"]);
    expect(await endedOf(page)).toBe(0);
  });
});

test("an origin that is not listed cannot frame the page", async () => {
  suite.expectMessages(/frame-ancestors|Framing '.*' violates/i);
  const page = await openApplication(UNLISTED);
  const refusal = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
  const url = await linkFor("unlisted");
  await embed(page, url);
  await refusal;
  expect(await frameOf(page).getByRole("heading").count()).toBe(0);
  expect(await heightOf(page)).toBe(400);
  // The refusal does not use the link.
  await page.goto(url);
  await page.getByRole("heading", { level: 1, name: "Your API keys" }).waitFor();
});

test("the page is shown where the browser blocks cookies of third parties", async () => {
  const browser = await startChromium({ args: ["--test-third-party-cookie-phaseout"] });
  try {
    const context = await browser.newContext({ locale: "en" });
    const page = await context.newPage();
    await page.goto(OTHER_SITE);
    const frame = await embed(page, await linkFor("partitioned"));
    await createKey(frame, "partitioned");
    expect(await context.cookies(suite.server.url)).toMatchObject([
      { name: "__Host-keyhold-key-page", partitionKey: "http://localhost" },
    ]);
    // The session is that of this site.
    await page.goto(`${suite.server.url}/keys`);
    await page.getByText("There is no session in this browser").waitFor();
  } finally {
    await browser.close();
  }
});

test("a link that was used reports the end, and a new one continues without another entry in the history", async () => {
  suite.expectMessages(/401/);
  const page = await openApplication(OTHER_SITE);
  const used = await linkFor("used");
  await heading(await embed(page, used)).waitFor();
  const entries = await page.evaluate(() => history.length);
  await page.evaluate(() => document.querySelector("keyhold-key-page")?.removeAttribute("src"));
  expect(await page.locator("keyhold-key-page iframe").count()).toBe(0);
  await heading(await embed(page, used), "This link can no longer be used").waitFor();
  await expect.poll(() => endedOf(page)).toBe(1);
  await heading(await embed(page, await linkFor("used"))).waitFor();
  expect(await page.evaluate(() => history.length)).toBe(entries);
  expect(await endedOf(page)).toBe(1);
});

test("messages of another window, or of another origin in the frame, have no effect", async () => {
  suite.expectMessages(/401/);
  const page = await openApplication(OTHER_SITE);
  await heading(await embed(page, await linkFor("messages"))).waitFor();
  await expectFitting(page);
  const height = await heightOf(page);
  const received = () => page.evaluate(() => JSON.stringify(window.messages));
  await page.evaluate(() => {
    window.messages = [];
    window.postMessage({ type: "keyhold-key-page:height", height: 5000 }, "*");
    // Another frame with the origin of Keyhold, whose page reports the end of its session.
    const other = document.createElement("iframe");
    other.src = new URL("#rejected", document.querySelector<KeyPageElement>("keyhold-key-page")?.src).href;
    document.body.append(other);
  });
  await expect.poll(received).toMatch(/5000.*ended/);
  expect([await heightOf(page), await endedOf(page)]).toEqual([height, 0]);
  // The frame of the element with a page of the application.
  await page.evaluate(() => {
    const frame = document.querySelector("keyhold-key-page")?.shadowRoot?.querySelector("iframe");
    if (frame?.contentWindow) frame.contentWindow.location.href = "/own";
  });
  await expect.poll(received).toContain("posted");
  expect([await heightOf(page), await endedOf(page)]).toEqual([height, 0]);
});

test.each([
  [-5, 200],
  [1e9, 20_000],
  [300.2, 301],
  ["300", 400],
  [Number.NaN, 400],
  [null, 400],
])("a page that reports the height %s is %i pixels high", async (reported, height) => {
  const page = await openApplication(OTHER_SITE);
  // A page of the application, because the key page reports no such height.
  await embed(page, `${OTHER_SITE}/blank`);
  await page.locator("keyhold-key-page iframe").contentFrame().locator("body").waitFor({ state: "attached" });
  await page.frames()[1]?.evaluate((height) => {
    parent.postMessage({ type: "keyhold-key-page:height", height }, "*");
    for (const other of [null, "text", { type: "unknown" }, {}]) parent.postMessage(other, "*");
  }, reported);
  await expect.poll(() => page.evaluate(() => window.messages.length)).toBe(5);
  expect(await heightOf(page)).toBe(height);
});

test("an element that is moved continues the session", async () => {
  const page = await openApplication(OTHER_SITE);
  await createKey(await embed(page, await linkFor("moved")), "moved");
  const move = (method: "append" | "moveBefore") =>
    page.evaluate((method) => {
      const element = document.querySelector("keyhold-key-page");
      const section = document.body.appendChild(document.createElement("section"));
      if (element === null) return null;
      const frame = element.shadowRoot?.querySelector("iframe");
      if (method === "append") section.append(element);
      else (section as unknown as MoveBefore).moveBefore(element, null);
      return frame === element.shadowRoot?.querySelector("iframe");
    }, method);
  expect(await move("append")).toBe(false);
  await frameOf(page).getByText("moved", { exact: true }).waitFor();
  await expectFitting(page);
  const frame = frameOf(page);
  await frame.getByRole("button", { name: "New key" }).click();
  await frame.getByRole("textbox", { name: "Name" }).fill("kept");
  expect(await move("moveBefore")).toBe(true);
  expect(await frame.getByRole("textbox", { name: "Name" }).inputValue()).toBe("kept");
  expect(await endedOf(page)).toBe(0);
});

interface MoveBefore {
  moveBefore(node: Node, before: Node | null): void;
}

test.each(["javascript:parent.window.ended++", "data:text/html,x", "/keys#token", "blob:x", "about:blank", "http://"])(
  "src = %s loads nothing and reports an error without it",
  async (src) => {
    suite.expectMessages(/^uncaught: /);
    const page = await openApplication(OTHER_SITE);
    await heading(await embed(page, await linkFor("valid"))).waitFor();
    const error = page.waitForEvent("pageerror");
    await embed(page, src);
    const { name, message } = await error;
    expect(name).toBe("TypeError");
    expect(message).toMatch(/must be an absolute http or https URL/);
    expect(message).not.toContain(src);
    expect(await page.locator("keyhold-key-page iframe").count()).toBe(0);
    expect(await endedOf(page)).toBe(0);
  },
);

test("properties that are set before the element is defined have an effect, and it is defined once", async () => {
  const page = await openApplication(OTHER_SITE);
  await page.evaluate(
    (src) => {
      const name = "other-name";
      const element = Object.assign(document.createElement(name), { src, label: "Keys" });
      document.body.append(element);
      keyPage.defineKeyPage(name);
      keyPage.defineKeyPage(name);
    },
    await linkFor("early"),
  );
  const frame = page.locator("other-name iframe");
  expect(await frame.getAttribute("title")).toBe("Keys");
  await heading(frame.contentFrame()).waitFor();
});

test("its frame has a name, no referrer and no other permission", async () => {
  const page = await openApplication(OTHER_SITE);
  await embed(page, await linkFor("attributes"));
  const frame = page.locator("keyhold-key-page iframe");
  expect(
    await frame.evaluate((one) => Object.fromEntries([...one.attributes].map(({ name, value }) => [name, value]))),
  ).toEqual({
    title: "API keys",
    src: expect.stringContaining(`${suite.server.url}/keys#`),
    referrerpolicy: "no-referrer",
    allow: `clipboard-write ${suite.server.url}`,
  });
  await page.evaluate(() => document.querySelector("keyhold-key-page")?.setAttribute("label", "Your keys"));
  expect(await frame.getAttribute("title")).toBe("Your keys");
  const { width } = (await frame.boundingBox()) ?? {};
  expect(width).toBe(1264);
});
