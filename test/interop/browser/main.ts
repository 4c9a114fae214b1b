import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { startChromium } from "../../support/programs/chromium.ts";
import { type Check, printTap } from "../tap.ts";
import { checkDocs } from "./docs.ts";
import { checkEvents } from "./events.ts";

/**
 * Drives Chromium: a page of an origin in KEYHOLD_CORS_ORIGINS calls the server with connect-web, one of another origin is refused, and
 * /docs makes calls, and EventSource reads the audit log. Reads KEYHOLD_URL, KEYHOLD_TOKEN and KEYHOLD_PAGE_ORIGIN; prints TAP.
 */

const { KEYHOLD_URL: baseUrl = "", KEYHOLD_TOKEN: token = "", KEYHOLD_PAGE_ORIGIN: allowed = "" } = process.env;
const settings = { baseUrl, token };
const refused = allowed.replace("://", "://other.");

/** Milliseconds for one action on a page. Beside other suites, a click has taken more than the default of 30 s. */
const ACTION_TIMEOUT = 120_000;

const server = await servePage(await bundle(), Number(new URL(allowed).port));
const browser = await startChromium();
try {
  const checks = [
    ...(await checkPage(browser, allowed, `page.checkAllowed(${JSON.stringify(settings)})`)),
    ...(await checkPage(browser, refused, `page.checkRefused(${JSON.stringify(settings)})`)),
    ...(await onPage(browser, (page) => checkDocs(page, settings))),
    // EventSource cannot send a token; the server of a page, or a proxy, adds it.
    ...(await onPage(browser, (page) => checkEvents(page, settings), { authorization: `Bearer ${token}` })),
  ];
  printTap(checks);
} finally {
  await browser.close();
  server.close();
}

/** Returns the script of the page, whose exports are members of `page`. */
async function bundle(): Promise<string> {
  const input = resolve(import.meta.dirname, "page/page.ts");
  const build = await rolldown({ input, platform: "browser", logLevel: "silent" });
  const { output } = await build.generate({ format: "iife", name: "page", codeSplitting: false });
  await build.close();
  return output[0].code;
}

/** Serves a page with this script for every host. */
async function servePage(script: string, port: number): Promise<Server> {
  const page = `<!doctype html><title>test</title><script src="/page.js"></script>`;
  const server = createServer(({ url }, response) => {
    const isScript = url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script : page);
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  return server;
}

/** Opens the page at this origin and evaluates an expression in it. */
function checkPage(browser: Browser, origin: string, expression: string): Promise<Check[]> {
  return onPage(browser, async (page) => {
    await page.goto(origin);
    return page.evaluate<Check[]>(expression);
  });
}

/** Runs checks on a page of a context of its own, all of whose requests have these headers in addition. */
async function onPage(
  browser: Browser,
  check: (page: Page) => Promise<Check[]>,
  extraHTTPHeaders: Readonly<Record<string, string>> = {},
): Promise<Check[]> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, extraHTTPHeaders });
  context.setDefaultTimeout(ACTION_TIMEOUT);
  try {
    return await check(await context.newPage());
  } finally {
    await context.close();
  }
}
