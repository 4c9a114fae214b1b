import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { importMany } from "../support/many-keys.ts";
import { issue } from "../support/rest.ts";
import { useConsole } from "./console.ts";

const suite = useConsole();

/** Compressed bytes of a first load at most. */
const MAX_SIZE = 250_000;

test.each(["/keys", "/verify", "/keys/new", "/webhooks", "/audit"])("the first load of %s is small", async (path) => {
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, path);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.waitForLoadState("networkidle");
  const sizes = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .concat(performance.getEntriesByType("navigation"))
      .map((entry) => ({ name: entry.name, size: (entry as PerformanceResourceTiming).encodedBodySize })),
  );
  const total = sizes.reduce((sum, { size }) => sum + size, 0);
  expect(sizes.length).toBeGreaterThan(5);
  expect({ total, sizes: total > MAX_SIZE ? sizes : [] }).toEqual({ total: expect.any(Number), sizes: [] });
});

test("2,000 rows are scrolled with few of them in the document, and each page is read once", async () => {
  await importMany(suite.rest, 2_000, { actor_id: "many" });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/verify");
  const calls = countCalls(page);
  await page.goto(`${suite.server.url}/console/keys?filter=actor_id="many"`);
  await page.getByText("The newest 100 keys that match").waitFor();
  await expect
    .poll(async () => {
      await page.keyboard.press("End");
      return page.getByText("2,000 keys", { exact: true }).count();
    })
    .toBe(1);
  expect(calls.get("ListApiKeys")).toBe(20);
  expect(await page.getByRole("row").count()).toBeLessThan(100);
  await page.keyboard.press("Home");
  await page.getByRole("columnheader", { name: "Name" }).waitFor();
});

test("a list comes to rest, also where a row that comes near the window changes the height of the others", async () => {
  // The newest are first. The columns have another width with the older ones, and what is in them wraps.
  const actors = Array.from({ length: 30 }, (_, index) => `customer_with_a_long_name_${index}`);
  for (const actor_id of [...actors, ...Array<string>(25).fill("c")])
    await issue(suite.rest, { name: "a name of several words", actor_id, metadata: { list: "rest" } });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys?filter=metadata.list=rest");
  await page.getByText("55 keys", { exact: true }).waitFor();
  for (let height = 400; height <= 1_400; height += 50) {
    await page.setViewportSize({ width: 1280, height });
    for (const top of [0, 600]) {
      await page.evaluate(`scrollTo(0, ${top})`);
      const frames = await page.evaluate(framesUntilRest, 200);
      expect({ height, top, frames }).toEqual({ height, top, frames: expect.any(Number) });
    }
  }
});

test("a page that shows nothing live makes no further call", async () => {
  const { keyId } = await issue(suite.rest);
  for (const path of ["/", "/keys", `/keys/${keyId}`, "/audit", "/usage"]) {
    const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/verify");
    const calls = countCalls(page);
    await page.goto(`${suite.server.url}/console${path}`);
    await page.waitForLoadState("networkidle");
    const first = [...calls.values()].reduce((sum, count) => sum + count, 0);
    // An answer in a later second than the last call; nothing else tells that no timer of the page runs.
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 3_000)));
    expect([path, [...calls.values()].reduce((sum, count) => sum + count, 0)]).toEqual([path, first]);
    expect(Math.max(...calls.values(), 0), `calls of one RPC on ${path}`).toBeLessThanOrEqual(3);
  }
});

/** Returns after how many frames the rows of a page stay as they are for 20 frames; null: not within so many. In the page. */
async function framesUntilRest(max: number): Promise<number | null> {
  // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
  const { document, MutationObserver, requestAnimationFrame } = globalThis as any;
  let frame = 0;
  let changed = 0;
  const observer = new MutationObserver(() => {
    changed = frame;
  });
  observer.observe(document.querySelector("tbody"), { childList: true, subtree: true });
  for (; frame < max && frame < changed + 20; frame++) await new Promise((shown) => requestAnimationFrame(shown));
  observer.disconnect();
  return frame < max ? changed : null;
}

/** Counts the calls of a page from now on, by RPC. */
function countCalls(page: Page): ReadonlyMap<string, number> {
  const calls = new Map<string, number>();
  page.on("request", (request) => {
    const [, rpc] = /\/console\/api\/[\w.]+\/(\w+)$/.exec(request.url()) ?? [];
    if (rpc !== undefined) calls.set(rpc, (calls.get(rpc) ?? 0) + 1);
  });
  return calls;
}
