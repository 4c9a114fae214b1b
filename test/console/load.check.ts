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

/** Counts the calls of a page from now on, by RPC. */
function countCalls(page: Page): ReadonlyMap<string, number> {
  const calls = new Map<string, number>();
  page.on("request", (request) => {
    const [, rpc] = /\/console\/api\/[\w.]+\/(\w+)$/.exec(request.url()) ?? [];
    if (rpc !== undefined) calls.set(rpc, (calls.get(rpc) ?? 0) + 1);
  });
  return calls;
}
