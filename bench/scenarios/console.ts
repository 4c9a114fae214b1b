import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import type { Browser, Page } from "playwright-core";
import { startChromium } from "../../test/support/programs/chromium.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { installSeeded } from "../subject/seeded.ts";

/** Keys that are scrolled through. */
const LONG_LIST = 10_000;
const MANY = 1_000_000;

/** How many times slower than this machine the processor of a page is that is loaded. */
const SLOWDOWN = 4;

/** Pixels of one step of the wheel. */
const STEP = 700;

const listed = once(async (fixture) => (await installSeeded(fixture, { count: LONG_LIST })).installation.server.url);
const many = once(async (fixture) => (await installSeeded(fixture, { count: MANY })).installation.server.url);

const shared = { group: "console", against: "absolute", judged: "value", needs: ["chromium"], rounds: 9 } as const;

/** The pages of the console in Chromium, which uses all cores and no GPU. */
export const consoleScenarios: readonly Scenario[] = [
  load("overview", "/"),
  load("keys", "/keys"),
  load("key-form", "/keys/new"),
  load("verify", "/verify"),
  {
    ...shared,
    name: "console-scroll",
    work: "console, frames over 50 ms while 10,000 keys are loaded by scrolling",
    unit: "frames",
    rounds: 3,
    prepare: (fixture) => visits(fixture, listed, scroll),
  },
  {
    ...shared,
    name: "console-jump",
    work: "console, frames over 50 ms in 300 jumps through 10,000 loaded keys",
    unit: "frames",
    rounds: 3,
    prepare: (fixture) => visits(fixture, listed, jump),
  },
  {
    ...shared,
    name: "console-first-page-1m",
    work: "console, from the response of the list at 1,000,000 keys to its rows",
    unit: "ms",
    long: 150,
    prepare: (fixture) => visits(fixture, many, firstPage),
  },
];

/** The first load of a page, with nothing in the cache of the browser. */
function load(name: string, path: string): Scenario {
  const measure: Measure = async (page, url) => {
    const devTools = await page.context().newCDPSession(page);
    await devTools.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
    await page.goto(`${url}/console${path}`, { waitUntil: "commit" });
    return page.evaluate<number>("benchmark.interactive()");
  };
  return {
    ...shared,
    name: `console-load-${name}`,
    work: `console, ${path} with an empty cache at ${SLOWDOWN} × CPU throttling, until it is interactive`,
    unit: "s",
    prepare: (fixture) => visits(fixture, listed, measure),
  };
}

type Measure = (page: Page, url: string) => Promise<number>;

const IN_PAGE = stripTypeScriptTypes(readFileSync(new URL("../browser/page.ts", import.meta.url), "utf8"));

/** Each measurement is one page, in a browser context of its own. */
async function visits(fixture: Fixture, urlOf: (fixture: Fixture) => Promise<string>, measure: Measure) {
  const [url, browser] = [await urlOf(fixture), await chromium(fixture)];
  const subject = async () => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en" });
    try {
      // A script, not a module: in a function of its own, which exports nothing.
      await context.addInitScript(`{${IN_PAGE.replace(/^export \{\};$/m, "")}}`);
      return await measure(await context.newPage(), url);
    } finally {
      await context.close();
    }
  };
  return { subject, baseline: null };
}

const chromium = once(async (fixture): Promise<Browser> => {
  // A child has the cores of its parent.
  fixture.pinning.move("both", process.pid);
  const browser = await startChromium();
  fixture.pinning.move("load", process.pid);
  fixture.onClose(() => browser.close());
  return browser;
});

const scroll: Measure = async (page, url) => {
  await openList(page, url);
  await page.evaluate("benchmark.countFrames()");
  await loadAll(page);
  return page.evaluate<number>("benchmark.longFrames()");
};

const jump: Measure = async (page, url) => {
  await openList(page, url);
  await loadAll(page);
  await page.evaluate("benchmark.countFrames()");
  await page.evaluate("benchmark.jump(300)");
  return page.evaluate<number>("benchmark.longFrames()");
};

const firstPage: Measure = async (page, url) => {
  await page.goto(`${url}/console/keys`);
  return page.evaluate<number>("benchmark.firstRows()");
};

async function openList(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/console/keys`);
  await page.locator("tbody tr").first().waitFor();
  await page.mouse.move(600, 500);
}

/** Scrolls by the wheel until the last key is shown. */
async function loadAll(page: Page): Promise<void> {
  const last = page.locator(`tbody tr[aria-rowindex="${LONG_LIST + 1}"]`);
  while ((await last.count()) === 0) for (let step = 0; step < 10; step++) await page.mouse.wheel(0, STEP);
}
