import type { Browser, Page } from "playwright-core";
import { startChromium } from "../../test/support/programs/chromium.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { installSeeded } from "../subject/seeded.ts";

/** Keys that are scrolled through. */
const LONG_LIST = 10_000;
const MANY = 1_000_000;

/** How many times slower than this machine the processor of the page is. */
const SLOWDOWN = 4;

/** Milliseconds in which a page answers late: a task longer than this is a long task (W3C Long Tasks), and a frame is seen to be missing. */
const LONG_TASK = 50;

/** Pixels of one step of scrolling. */
const STEP = 700;

const listed = once(async (fixture) => (await installSeeded(fixture, { count: LONG_LIST })).installation.server.url);
const many = once(async (fixture) => (await installSeeded(fixture, { count: MANY })).installation.server.url);

const shared = { group: "console", against: "absolute", judged: "value", needs: ["chromium"], rounds: 9 } as const;

/** The pages of the console in Chromium without a GPU, which uses all cores. */
export const consoleScenarios: readonly Scenario[] = [
  load("overview", "/"),
  load("keys", "/keys"),
  load("key-form", "/keys/new"),
  load("verify", "/verify"),
  {
    ...shared,
    name: "console-scroll",
    work: "console, frames over 50 ms while the first 10,000 keys are loaded by scrolling",
    unit: "frames",
    rounds: 3,
    prepare: async (fixture) => pairOf(await opener(fixture, await listed(fixture)), scroll),
  },
  {
    ...shared,
    name: "console-jump",
    work: "console, frames over 50 ms in 300 jumps through 10,000 loaded keys",
    unit: "frames",
    rounds: 3,
    prepare: async (fixture) => pairOf(await opener(fixture, await listed(fixture)), jump),
  },
  {
    ...shared,
    name: "console-first-page-1m",
    work: "console, from the response of the list at 1,000,000 keys to its rows",
    unit: "ms",
    long: 150,
    prepare: async (fixture) => pairOf(await opener(fixture, await many(fixture)), firstPage),
  },
];

/** The first load of a page, with nothing in the cache of the browser. */
function load(name: string, path: string): Scenario {
  return {
    ...shared,
    name: `console-load-${name}`,
    work: `console, ${path} with an empty cache and a processor ${SLOWDOWN} times slower, until it is interactive`,
    unit: "s",
    prepare: async (fixture) => pairOf(await opener(fixture, await listed(fixture)), (page) => interactive(page, path)),
  };
}

interface Visit {
  readonly page: Page;
  readonly url: string;
}

type Open = <T>(measure: (visit: Visit) => Promise<T>) => Promise<T>;

/** Each measurement is one page in a browser context of its own. */
async function opener(fixture: Fixture, url: string): Promise<Open> {
  const browser = await chromium(fixture);
  return async (measure) => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en" });
    try {
      return await measure({ page: await context.newPage(), url });
    } finally {
      await context.close();
    }
  };
}

const chromium = once(async (fixture): Promise<Browser> => {
  const browser = await startChromium();
  fixture.onClose(() => browser.close());
  return browser;
});

function pairOf(open: Open, measure: (visit: Visit) => Promise<number>): { subject: Measure; baseline: null } {
  return { subject: () => open(measure), baseline: null };
}

/** Returns the seconds until the page has its heading, and its last long task is over. */
async function interactive({ page, url }: Visit, path: string): Promise<number> {
  await page.addInitScript(() => {
    const tasks: PerformanceEntry[] = [];
    new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({ type: "longtask", buffered: true });
    const heading = new Promise<number>((resolve) => {
      new MutationObserver((_, observer) => {
        if (document.querySelector("h1") === null) return;
        observer.disconnect();
        resolve(performance.now());
      }).observe(document, { childList: true, subtree: true });
    });
    const end = () => Math.max(0, ...tasks.map(({ startTime, duration }) => startTime + duration));
    Object.assign(globalThis, {
      interactive: async () => {
        const shown = await heading;
        // The page is quiet when a second has passed without a long task.
        while (performance.now() - Math.max(shown, end()) < 1000) await new Promise((done) => setTimeout(done, 100));
        return Math.max(shown, end());
      },
    });
  });
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  await page.goto(`${url}/console${path}`, { waitUntil: "commit" });
  return (await page.evaluate(() => (globalThis as unknown as InPage).interactive())) / 1000;
}

interface InPage {
  interactive(): Promise<number>;
  frames: number[];
}

async function scroll(visit: Visit): Promise<number> {
  await openList(visit);
  await countFrames(visit.page);
  await loadAll(visit.page);
  return longFrames(visit.page);
}

async function jump(visit: Visit): Promise<number> {
  await openList(visit);
  await loadAll(visit.page);
  await countFrames(visit.page);
  await visit.page.evaluate(async () => {
    for (let jump = 0; jump < 300; jump++) {
      // Multiples of the golden ratio, modulo 1, are spread evenly.
      scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * ((jump * 0.618) % 1));
      await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
    }
  });
  return longFrames(visit.page);
}

async function openList({ page, url }: Visit): Promise<void> {
  await page.goto(`${url}/console/keys`);
  await page.locator("tbody tr").first().waitFor();
  await page.mouse.move(600, 500);
}

/** Scrolls by the wheel until the last key is shown. */
async function loadAll(page: Page): Promise<void> {
  const last = page.locator(`tbody tr[aria-rowindex="${LONG_LIST + 1}"]`);
  while ((await last.count()) === 0) for (let step = 0; step < 10; step++) await page.mouse.wheel(0, STEP);
}

async function countFrames(page: Page): Promise<void> {
  await page.evaluate(() => {
    const frames: number[] = [];
    let last = performance.now();
    const next = (time: number) => {
      frames.push(time - last);
      last = time;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
    Object.assign(globalThis, { frames });
  });
}

/** Returns how many frames since `countFrames` took longer than 50 ms. */
async function longFrames(page: Page): Promise<number> {
  const frames = await page.evaluate(() => (globalThis as unknown as InPage).frames);
  return frames.filter((time) => time > LONG_TASK).length;
}

/** Returns the milliseconds from the response of the list to the frame with its first rows. */
async function firstPage({ page, url }: Visit): Promise<number> {
  await page.addInitScript(() => {
    const shown = new Promise<number>((resolve) => {
      new MutationObserver((_, observer) => {
        if (document.querySelector("tbody tr") === null) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { childList: true, subtree: true });
    });
    Object.assign(globalThis, {
      interactive: async () => {
        const time = await shown;
        const [response] = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/ListApiKeys"));
        return time - (response as PerformanceResourceTiming).responseEnd;
      },
    });
  });
  await page.goto(`${url}/console/keys`);
  return page.evaluate(() => (globalThis as unknown as InPage).interactive());
}
