import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type GuardedSuite, useGuardedService } from "../support/guarded.ts";
import { startChromium } from "../support/programs/chromium.ts";

/** A person in front of the console. */
export interface Visitor
  extends Pick<BrowserContextOptions, "colorScheme" | "reducedMotion" | "locale" | "deviceScaleFactor"> {
  /** The admin token to sign in with; null: the person does not sign in. */
  readonly token: string | null;
  /** Pixels. */
  readonly width?: number;
}

export interface ConsoleSuite extends GuardedSuite {
  /** Opens a page of the console, such as `/keys`, or a URL, in a browser context of its own. */
  visit(visitor: Visitor, path: string): Promise<Page>;
  /** Opens another tab beside a page. */
  openTab(page: Page, path: string): Promise<Page>;
  /** Expects exactly these messages of the browser's console in this test, beside those of others: each must match one of them. */
  expectMessages(...patterns: readonly RegExp[]): void;
}

/** Milliseconds for one action. Beside other suites, a click has taken more than ten seconds. */
const ACTION_TIMEOUT = 30_000;

/**
 * Starts the service, by default with `KEYHOLD_AUTH=admin-token`, and Chromium. A test fails if a page violates its Content-Security-Policy, logs
 * an error or does not handle one.
 */
export function useConsole(environment?: () => Record<string, string>): ConsoleSuite {
  const suite = useGuardedService(environment);
  let browser: Browser | undefined;
  const contexts: BrowserContext[] = [];
  const problems: string[] = [];
  let expected: readonly RegExp[] = [];
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.close());
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    const patterns = expected;
    expected = [];
    expect(problems.splice(0).filter((problem) => !patterns.some((pattern) => pattern.test(problem)))).toEqual([]);
  });
  const open = async (context: BrowserContext, path: string): Promise<Page> => {
    const page = await context.newPage();
    page.on("pageerror", (error) => problems.push(`uncaught: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning")
        problems.push(`${message.type()}: ${message.text()} ${message.location().url}`);
    });
    await page.goto(URL.canParse(path) ? path : `${suite.server.url}/console${path}`);
    return page;
  };
  const visit: ConsoleSuite["visit"] = async ({ token, width = 1280, ...options }, path) => {
    if (browser === undefined) throw new Error("the browser has not started");
    const viewport = { width, height: 800 };
    const context = await browser.newContext({ locale: "en", timezoneId: "UTC", viewport, ...options });
    contexts.push(context);
    context.setDefaultTimeout(ACTION_TIMEOUT);
    if (token !== null) await beginSession(context, suite.server.url, token);
    return open(context, path);
  };
  return {
    get server() {
      return suite.server;
    },
    get sql() {
      return suite.sql;
    },
    rest: suite.rest,
    as: suite.as,
    token: suite.token,
    visit,
    openTab: (page, path) => open(page.context(), path),
    expectMessages: (...patterns) => {
      expected = patterns;
    },
  };
}

/** Begins a session as the page for signing in does. */
async function beginSession(context: BrowserContext, url: string, token: string): Promise<void> {
  const page = await context.newPage();
  // A document of this origin whose policy permits calls.
  await page.goto(`${url}/health/alive`);
  const status = await page.evaluate(async (credential) => {
    const headers = { authorization: `Bearer ${credential}` };
    return (await fetch("/console/session", { method: "POST", headers })).status;
  }, token);
  expect(status).toBe(204);
  await page.close();
}

/** Waits until the page at /docs shows the operations. It renders all of them at once, which has taken half a minute beside other suites. */
export async function renderedDocs(page: Page): Promise<Page> {
  page.setDefaultTimeout(100_000);
  await page.locator(".opblock").first().waitFor();
  return page;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of WCAG 2.2 AA and before, and best practices for names and headings. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

interface AxeOptions {
  /** A selector of the part that is checked; default: the page. */
  readonly within?: string;
  /** Rules, or tags of rules. */
  readonly rules?: readonly string[];
  /** Rules that are left out. */
  readonly except?: readonly string[];
}

/** Expects that axe finds nothing on the page as it is now. Waits for its heading: the document is loaded before it. */
export async function expectAccessible(
  page: Page,
  { within = "html", rules = RULES, except = [] }: AxeOptions = {},
): Promise<void> {
  await page.locator("h1").first().waitFor({ state: "attached" });
  await page.evaluate(AXE);
  const found = await page.evaluate(
    async ({ within, rules, except }) => {
      const { axe } = globalThis as unknown as { axe: Axe };
      const disabled = Object.fromEntries(except.map((rule) => [rule, { enabled: false }]));
      const options = { runOnly: rules, rules: disabled, resultTypes: ["violations"] };
      const { violations } = await axe.run(within, options);
      return violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`),
      );
    },
    { within, rules, except },
  );
  expect(found).toEqual([]);
}

interface Axe {
  run(within: string, options: object): Promise<{ violations: Violation[] }>;
}

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}
