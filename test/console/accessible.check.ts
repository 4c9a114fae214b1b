import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { actors } from "../../console/texts/actors.ts";
import { audit } from "../../console/texts/audit.ts";
import type { Language } from "../../console/texts/catalogue.ts";
import { common } from "../../console/texts/common.ts";
import { hmacKeys } from "../../console/texts/hmac-keys.ts";
import { keyForm } from "../../console/texts/key-form.ts";
import { keyPage } from "../../console/texts/key-page.ts";
import { keys } from "../../console/texts/keys.ts";
import { session } from "../../console/texts/session.ts";
import { usage } from "../../console/texts/usage.ts";
import { verify as verifyTexts } from "../../console/texts/verify.ts";
import { webhooks } from "../../console/texts/webhooks.ts";
import { importKey, succeeded } from "../support/conformance.ts";
import { issue, paths, verify } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

const ids = { active: "", disabled: "", imported: "", rotated: "", token: "" };
let secret = "";

beforeAll(async () => {
  const made = await issue(suite.rest, {
    name: "k-active",
    actor_id: "a",
    scopes: ["read", "write"],
    metadata: { env: "prod" },
  });
  [ids.active, secret] = [made.keyId, made.secret];
  ids.disabled = (await issue(suite.rest, { name: "k-disabled", actor_id: "a" })).keyId;
  ids.rotated = (await issue(suite.rest, { name: "k-rotated", actor_id: "a" })).keyId;
  ids.token = (await issue(suite.rest, { name: "k-token", actor_id: "a", scopes: ["keyhold:verify"] })).keyId;
  ids.imported = (await importKey(suite.rest, { name: `k-${"long-".repeat(20)}`, actor_id: "a".repeat(200) })).keyId;
  succeeded(await suite.rest("POST", `${paths.keys}/${ids.disabled}:disable`, { reason: "unpaid" }));
  succeeded(await suite.rest("POST", `${paths.issued}/${ids.rotated}:rotate`, { grace_period: "1h" }));
  const limits = {
    rate_limits: [{ name: "requests", quota: 1_000, window: "60s" }],
    quotas: [{ name: "monthly", limit: 9, period: "QUOTA_PERIOD_MONTH" }],
  };
  succeeded(await suite.rest("PATCH", `${paths.actors}/a`, { actor: limits, update_mask: "rate_limits,quotas" }));
  for (const id of ["on", "off"]) {
    const endpoint = {
      endpoint_id: id,
      url: `https://hooks.invalid/${"x".repeat(80)}`,
      event_types: ["signing_key.rotated"],
    };
    succeeded(await suite.rest("POST", paths.webhookEndpoints, endpoint));
    succeeded(await suite.rest("POST", `${paths.webhookEndpoints}/${id}:sendTestEvent`, {}));
  }
  const update = { webhook_endpoint: { disabled: true }, update_mask: "disabled" };
  succeeded(await suite.rest("PATCH", `${paths.webhookEndpoints}/off`, update));
  await suite.rest("POST", paths.hmacKeys, { hmac_key_id: "h", key: "a2V5", encoding: "TEXT_ENCODING_BASE64" });
  for (let times = 0; times < 3; times++) await verify(suite.rest, secret);
  // A server that stops stores what it has counted.
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token" });
});

interface Dialog {
  /** The button that opens it. */
  readonly opener: string | RegExp;
  /** Its main action. */
  readonly main: string;
  /** The main action of what follows when it is confirmed as it is. */
  readonly next?: string;
}

interface View {
  readonly path: string;
  readonly heading: string;
  /** The name of its main control; null: it has none. */
  readonly main: string | null;
  readonly dialogs?: readonly Dialog[];
  prepare?(page: Page): Promise<void>;
}

/** Returns all pages with their dialogs, but the audit of an import, which test/console/import.check.ts walks through. */
function viewsIn(language: Language): readonly View[] {
  const [{ pages, save }, key, list, form] = [common[language], keyPage[language], keys[language], keyForm[language]];
  const [hook, hmac, actor, log] = [webhooks[language], hmacKeys[language], actors[language], audit[language]];
  const [{ explain, credential }, { asTable, apply }] = [verifyTexts[language], usage[language]];
  const { signOut, menu } = session[language];
  const same = (action: string): Dialog => ({ opener: action, main: action });
  return [
    { path: "/", heading: pages.overview, main: asTable, dialogs: [{ opener: new RegExp(menu), main: signOut }] },
    {
      path: `/keys?${new URLSearchParams({ filter: 'actor_id="a"' })}`,
      heading: pages.keys,
      main: pages.newKey,
      dialogs: [same(list.revoke), same(list.disable)],
    },
    { path: "/keys/new", heading: pages.newKey, main: form.create },
    { path: "/keys/import", heading: pages.importKeys, main: null },
    {
      path: `/keys/${ids.active}`,
      heading: "k-active",
      main: key.revoke,
      dialogs: [
        { opener: key.edit, main: save },
        { ...same(key.rotate), next: form.done },
        same(key.disable),
        same(key.revoke),
      ],
    },
    { path: `/keys/${ids.disabled}`, heading: "k-disabled", main: key.enable, dialogs: [same(key.enable)] },
    {
      path: `/keys/${ids.imported}`,
      heading: `k-${"long-".repeat(20)}`,
      main: key.delete,
      dialogs: [same(key.delete)],
    },
    { path: `/keys/${ids.rotated}`, heading: "k-rotated", main: key.endGrace, dialogs: [same(key.endGrace)] },
    { path: `/keys/${ids.token}`, heading: "k-token", main: key.revoke, dialogs: [same(key.revoke)] },
    {
      path: "/verify",
      heading: pages.verify,
      main: explain,
      prepare: async (page) => {
        await page.getByRole("textbox", { name: credential }).fill(secret);
        await page.keyboard.press("Enter");
        await page.getByRole("table").waitFor();
      },
    },
    { path: "/actors", heading: pages.actors, main: actor.go },
    {
      path: "/actors/a",
      heading: "a",
      main: actor.keys,
      dialogs: [
        { opener: actor.adjust, main: actor.refund },
        { opener: actor.deleteAll, main: actor.deleteConfirm },
      ],
    },
    { path: "/usage", heading: pages.usage, main: apply },
    {
      path: "/audit",
      heading: pages.audit,
      main: log.verifyLog,
      dialogs: [{ opener: log.verifyLog, main: log.verifyAgain }],
    },
    { path: "/audit/0", heading: log.event("0"), main: null },
    {
      path: "/webhooks",
      heading: pages.webhooks,
      main: hook.create,
      dialogs: [{ opener: hook.create, main: hook.createConfirm }],
    },
    {
      path: "/webhooks/on",
      heading: "on",
      main: hook.sendTest,
      dialogs: [
        { opener: hook.edit, main: hook.editConfirm },
        same(hook.disable),
        { opener: hook.rotate, main: hook.rotateConfirm, next: common[language].close },
        { opener: hook.replay, main: hook.replayConfirm },
        same(hook.delete),
      ],
    },
    { path: "/webhooks/off", heading: "off", main: hook.enable, dialogs: [same(hook.enable)] },
    {
      path: "/hmac-keys",
      heading: pages.hmacKeys,
      main: hmac.create,
      dialogs: [
        { opener: hmac.create, main: hmac.store },
        { opener: hmac.deleteNamed("h"), main: hmac.delete },
      ],
    },
  ];
}

/** Checks a page, or the open dialog on it. */
type Check = (page: Page, within: string, main: Locator | null) => Promise<void>;

/** Goes through all views in a browser that wants less motion, and expects that the check finds nothing. */
async function walk(language: Language, check: Check): Promise<void> {
  const problems: string[] = [];
  const options = { locale: language, reducedMotion: "reduce", deviceScaleFactor: 2 } as const;
  const page = await suite.visit({ token: suite.token("keyhold:admin"), ...options }, "/icon.svg");
  const calls = new Set<string>();
  page.on("request", (request) => {
    if (request.url().includes("/console/api/")) calls.add(request.url());
  });
  const ended = (request: { url(): string }) => calls.delete(request.url());
  page.on("requestfinished", ended);
  page.on("requestfailed", ended);
  await page.goto(`${suite.server.url}/console/`);
  const idle = async () => {
    const loaders = page.locator(".mantine-Loader-root");
    await expect.poll(async () => calls.size + (await loaders.count()), { interval: 20 }).toBe(0);
  };
  /** All problems of a walk are found at once. */
  const note = (place: string, checked: Promise<void>) =>
    checked.catch((error: Error & { actual?: unknown }) => {
      problems.push(`${place}: ${error.message} ${JSON.stringify(error.actual) ?? ""}`);
    });
  const dialog = page.getByRole("dialog");
  for (const { path, heading, main, dialogs = [], prepare } of viewsIn(language)) {
    await page.locator("#content").waitFor();
    await page.evaluate((url) => history.pushState(null, "", url), `/console${path}`);
    await page.locator("#content h1").getByText(heading, { exact: true }).waitFor();
    expect(await page.locator("h1").count(), path).toBe(1);
    await idle();
    await prepare?.(page);
    await note(path, check(page, "html", main === null ? null : control(page.locator("#content"), main)));
    for (const { opener, main, next } of dialogs) {
      const button = page.getByRole("button", { name: opener, exact: true });
      await button.press("Enter");
      await dialog.waitFor();
      await idle();
      await note(`${path}: ${opener}`, expectFocus(dialog, "within"));
      await note(`${path}: ${opener}`, check(page, "[role=dialog]", control(dialog, main)));
      if (next !== undefined) {
        await control(dialog, main).press("Enter");
        await control(dialog, next).waitFor();
        await idle();
        await note(`${path}: after ${opener}`, expectFocus(dialog, "within"));
        await note(`${path}: after ${opener}`, check(page, "[role=dialog]", control(dialog, next)));
      }
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await note(`${path}: closed ${opener}`, expectFocus(button, "itself"));
    }
  }
  expect(problems).toEqual([]);
}

const control = (within: Locator, name: string): Locator => {
  const options = { name, exact: true };
  return within
    .getByRole("button", options)
    .or(within.getByRole("link", options))
    .or(within.getByRole("switch", options))
    .last();
};

function expectFocus(locator: Locator, where: "within" | "itself"): Promise<void> {
  const hasFocus = () =>
    locator.evaluate((element, inside) => {
      const { activeElement } = document;
      return inside ? element.contains(activeElement) : element === activeElement;
    }, where === "within");
  return expect.poll(hasFocus, { message: `the focus is ${where} ${locator}`, timeout: 5_000 }).toBe(true);
}

/** Expects that the page fits into narrow and wide windows, of which 640 is 1280 at a zoom of 200 %, and that a control is in sight. */
async function expectToFit(page: Page, main: Locator | null): Promise<void> {
  for (const width of [360, 640, 2560]) {
    await page.setViewportSize({ width, height: 800 });
    const tooWide = () =>
      page.evaluate(() => {
        const { scrollWidth } = document.documentElement;
        if (scrollWidth <= innerWidth) return [];
        return [...document.querySelectorAll("body *")]
          .filter((element) => element.getBoundingClientRect().right > innerWidth)
          .map(({ outerHTML }) => `${scrollWidth} > ${innerWidth}: ${outerHTML.slice(0, 200)}`)
          .slice(-3);
      });
    await expect.poll(tooWide, { timeout: 5_000 }).toEqual([]);
    const box = main === null ? null : await main.boundingBox();
    if (main !== null) expect(box, `${main} at ${width}`).not.toBeNull();
    if (box !== null) expect([width, box.x >= 0, box.x + box.width <= width]).toEqual([width, true, true]);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** Expects that nothing moves. */
async function expectStillness(page: Page): Promise<void> {
  const moving = await page.evaluate(() =>
    document
      .getAnimations()
      .filter(({ playState, effect }) => playState === "running" && Number(effect?.getComputedTiming().duration) > 10)
      .map((animation) => `${"animationName" in animation ? animation.animationName : "transition"}`),
  );
  expect(moving).toEqual([]);
}

/** Milliseconds: beside other suites, a walk has taken 90 s. */
const LONG = { timeout: 300_000 };

test(
  "every page and dialog is accessible in both color schemes, fits into any window, and does not move",
  LONG,
  async () => {
    await walk("en", async (page, within, main) => {
      await expectStillness(page);
      await expectAccessible(page, { within });
      await page.emulateMedia({ colorScheme: "dark" });
      await expectAccessible(page, { within, rules: ["color-contrast"] });
      await page.emulateMedia({ colorScheme: "light" });
      await expectToFit(page, main);
    });
  },
);

test("nothing of the German pages and dialogs is in English", LONG, async () => {
  const { english, fragments } = await englishTexts();
  await walk("de", async (page, within, main) => {
    const found = (await page.evaluate(readTexts, within)).filter(
      (text) => english.has(text) || fragments.some((fragment) => text.includes(fragment)),
    );
    expect(found).toEqual([]);
    await expectToFit(page, main);
  });
});

/** Returns the visible texts, and those for screen readers. */
function readTexts(within: string): string[] {
  const isVisible = (element: Element | null) => element?.checkVisibility({ visibilityProperty: true }) === true;
  const texts: (string | null)[] = [document.title];
  for (const root of document.querySelectorAll(within)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement, textContent } = walker.currentNode;
      // Its parts, such as those of the type of an event, are not texts.
      const whole = parentElement?.closest(".short");
      if (isVisible(parentElement)) texts.push(whole?.textContent ?? textContent);
    }
    for (const element of root.querySelectorAll("*"))
      if (isVisible(element))
        texts.push(
          ...["aria-label", "aria-description", "placeholder", "title", "alt"].map((name) =>
            element.getAttribute(name),
          ),
        );
  }
  return texts.flatMap((text) => text?.trim() || []);
}

/** Returns the English texts of all catalogues that no German text has: whole ones, and the parts of those with arguments. */
async function englishTexts() {
  const folder = join(import.meta.dirname, "../../console/texts");
  const all: Record<Language, string[]> = { en: [], de: [] };
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".ts") && name !== "catalogue.ts"))
    for (const catalogue of Object.values<Record<Language, object>>(await import(join(folder, file))))
      for (const language of ["en", "de"] as const)
        if (typeof catalogue === "object") all[language].push(...partsOf(catalogue[language] ?? {}));
  const german = all.de.join("\n");
  return {
    english: new Set(all.en.filter((text) => !all.de.includes(text))),
    fragments: all.en.filter((text) => text.length >= 12 && !german.includes(text)),
  };
}

/** Returns the texts of a catalogue; of those with arguments, what is between the arguments. */
function partsOf(value: object): string[] {
  return Object.values(value).flatMap((member): string[] => {
    if (typeof member === "object") return partsOf(member);
    const text = typeof member === "function" ? String(member("7", "7", "7")) : String(member);
    return typeof member === "function"
      ? text
          .split("7")
          .map((part) => part.trim())
          .filter((part) => part.length >= 12)
      : [text];
  });
}

/** Records how everything looks that can have the focus, to recognize what changes when it has. */
function recordLooks(): void {
  const looks = new WeakMap<Element, string>();
  const lookOf = (element: Element) => {
    // Some have a part, or a frame, that shows the focus.
    const { parentElement: frame, nextElementSibling: part } = element;
    return [element, part, frame, frame?.parentElement, frame?.parentElement?.parentElement]
      .map((shown) => {
        if (!shown) return "";
        const { outline, borderColor, boxShadow, backgroundColor, left } = getComputedStyle(shown);
        return [outline, borderColor, boxShadow, backgroundColor, left].join();
      })
      .join(";");
  };
  const focusable = "a[href], button, input, select, textarea, [tabindex]";
  Object.assign(globalThis, {
    keepLooks: () => {
      for (const element of document.querySelectorAll(focusable))
        if (element !== document.activeElement) looks.set(element, lookOf(element));
    },
    looksFocused: (element: Element) => looks.get(element) !== lookOf(element),
  });
}

declare global {
  var keepLooks: () => void;
  var looksFocused: (element: Element) => boolean;
}

test("a key is issued, rotated and revoked by the keyboard alone, over the paths that a reverse proxy must pass", async () => {
  suite.expectMessages(/401 \(Unauthorized\)/);
  const page = await suite.visit({ token: null, reducedMotion: "reduce" }, "/icon.svg");
  const called = new Set<string>();
  page.on("request", (request) => called.add(new URL(request.url()).pathname));
  await page.addInitScript(recordLooks);
  await page.goto(`${suite.server.url}/console/keys`);
  const heading = (name: string) => page.getByRole("heading", { level: 1, name, exact: true });
  const dialog = (name: string) => page.getByRole("dialog", { name, exact: true });
  const { keyboard } = page;
  /** Presses Tab until the control has the focus. */
  const tabTo = async (locator: Locator) => {
    await locator.waitFor();
    for (let steps = 0; steps < 80; steps++) {
      await page.evaluate("keepLooks()");
      await keyboard.press("Tab");
      const seen = await page.evaluate(() => {
        const { activeElement } = document;
        return activeElement === null || activeElement === document.body || globalThis.looksFocused(activeElement)
          ? ""
          : activeElement.outerHTML.slice(0, 300);
      });
      expect(seen, "has the focus, and looks as before").toBe("");
      if (await locator.evaluate((element) => element === document.activeElement)) return;
    }
    expect.fail(`Tab does not reach ${locator}`);
  };
  const press = async (locator: Locator) => {
    await tabTo(locator);
    await keyboard.press("Enter");
  };

  await tabTo(page.getByRole("textbox", { name: "Admin token" }));
  await keyboard.type(suite.token("keyhold:admin"));
  await keyboard.press("Enter");
  await heading("Keys").waitFor();
  await keyboard.press("/");
  const search = page.getByRole("textbox", { name: "Search keys" });
  await expectFocus(search, "itself");
  await keyboard.type("nothing");
  await keyboard.press("Enter");
  await page.waitForURL(/filter/);
  await page.getByText("Nothing matches.").waitFor();
  await expectFocus(search, "itself");
  await page.goto(`${suite.server.url}/console/keys`);
  await heading("Keys").waitFor();
  await expectFocus(page.locator("body"), "itself");
  const skip = page.getByRole("link", { name: "Skip to the content" });
  await tabTo(skip);
  expect((await skip.boundingBox())?.x).toBeGreaterThanOrEqual(0);
  await keyboard.press("Enter");
  await expectFocus(page.getByRole("main"), "itself");
  await press(page.getByRole("link", { name: "New key" }));

  await expectFocus(heading("New key"), "itself");
  expect(await page.title()).toBe("New key · Keyhold");
  await tabTo(page.getByRole("textbox", { name: "Name" }));
  await keyboard.type("by keyboard");
  await tabTo(page.getByRole("textbox", { name: "Actor" }));
  await keyboard.type("team_1");
  await tabTo(page.getByRole("combobox", { name: "Scopes" }));
  await keyboard.type("read,");
  await press(page.getByRole("button", { name: "Create key" }));
  await expectFocus(dialog("The key is created"), "within");
  await press(page.getByRole("button", { name: "Done" }));

  await expectFocus(heading("by keyboard"), "itself");
  expect(await page.title()).toBe("by keyboard · Keyhold");
  const rotate = page.getByRole("button", { name: "Rotate the secret" });
  await press(rotate);
  await expectFocus(dialog("Rotate the secret"), "within");
  await press(dialog("Rotate the secret").getByRole("button", { name: "Rotate the secret" }));
  await expectFocus(dialog("The key has a new secret"), "within");
  await press(page.getByRole("button", { name: "Done" }));
  await expectFocus(rotate, "itself");

  const revoke = page.getByRole("button", { name: "Revoke", exact: true });
  await press(revoke);
  await keyboard.press("Escape");
  await expectFocus(revoke, "itself");
  await keyboard.press("Enter");
  await expectFocus(dialog("Revoke"), "within");
  // Nothing behind the dialog gets the focus.
  for (let steps = 0; steps < 12; steps++) {
    await keyboard.press("Tab");
    await expectFocus(dialog("Revoke"), "within");
  }
  await tabTo(dialog("Revoke").getByRole("combobox", { name: "Reason" }));
  await keyboard.type("The key is");
  await tabTo(dialog("Revoke").getByRole("textbox", { name: "Type by keyboard to confirm" }));
  await keyboard.type("by keyboard");
  await press(dialog("Revoke").getByRole("button", { name: "Revoke" }));
  await page.getByText("The current secret would be rejected: the key is revoked").waitFor();
  expect(await page.getByText("The key is compromised").isVisible()).toBe(true);
  await expectFocus(page.getByRole("main"), "within");
  const others = [...called].filter((path) => !path.startsWith("/console/"));
  expect(others).toEqual(["/keyhold.v2alpha1.CallersService/WhoAmI"]);
});

test("after a deletion, the focus is on the heading of the list", async () => {
  const { keyId } = await importKey(suite.rest, { name: "imported" });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, `/keys/${keyId}`);
  await page.getByRole("button", { name: "Delete" }).press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("textbox").fill("imported");
  await dialog.getByRole("button", { name: "Delete" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  await expectFocus(page.getByRole("heading", { level: 1, name: "Keys" }), "itself");
});

test("signing in, what is not permitted, what does not exist and the menu of narrow windows are accessible", async () => {
  suite.expectMessages(/401 \(Unauthorized\)/, /404 \(Not Found\)/);
  const unknown = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
  for (const colorScheme of ["light", "dark"] as const) {
    const open = async (token: string | null, path: string, heading: string) => {
      const page = await suite.visit({ colorScheme, reducedMotion: "reduce", width: 360, token }, path);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      await expectAccessible(page);
      await expectStillness(page);
      await expectToFit(page, token === null ? page.getByRole("button", { name: "Sign in" }) : null);
      await page.setViewportSize({ width: 360, height: 800 });
      return page;
    };
    await open(null, "/keys", "Sign in");
    await open(suite.token("keyhold:verify"), "/keys", "Not permitted");
    await open(suite.token("keyhold:admin"), `/keys/${unknown}`, unknown);
    const page = await open(suite.token("keyhold:admin"), "/nothing", "There is no such page.");
    const burger = page.getByRole("button", { name: "Show or hide the navigation" });
    const keysLink = page.getByRole("link", { name: "Keys", exact: true });
    expect(await keysLink.isVisible()).toBe(false);
    await burger.press("Enter");
    await keysLink.waitFor();
    expect(await burger.getAttribute("aria-expanded")).toBe("true");
    await expectStillness(page);
    await expectAccessible(page);
    await keysLink.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
    expect(await keysLink.isVisible()).toBe(false);
  }
});

test("what has failed has a heading as well", async () => {
  suite.expectMessages(/Failed to load resource/, /dynamically imported module/);
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/verify");
  await page.getByRole("heading", { level: 1 }).waitFor();
  const expectFailed = async (text: string) => {
    await page.getByRole("alert").getByText(text).waitFor();
    expect(await page.getByRole("heading", { level: 1 }).allInnerTexts()).toEqual(["Error"]);
    await expectAccessible(page);
  };
  const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  const isNew = ({ pathname, href }: URL) => pathname.endsWith(".js") && !loaded.includes(href);
  await page.route(isNew, (route) => route.abort());
  await page.getByRole("link", { name: "HMAC keys" }).click();
  await expectFailed("This page has failed. Reload it.");
  await page.route("**/*CallersService/WhoAmI", (route) => route.abort());
  await page.reload();
  await expectFailed("The server cannot be reached");
});

test("a page that loads does not move either, if less motion is wanted", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:admin"), reducedMotion: "reduce" }, "/verify");
  await page.route(/ListHmacKeys/, () => undefined);
  await page.getByRole("link", { name: "HMAC keys" }).click();
  await page.getByRole("status", { name: "Loading" }).waitFor();
  await expectStillness(page);
});
