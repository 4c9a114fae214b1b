import type { Route } from "playwright-core";
import { expect, test } from "vitest";
import { issue } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

test("keys are found by name, last four characters, actor and id, and the URL keeps the filter", async () => {
  const { keyId, record } = await issue(suite.rest, { name: "invoice worker", actor_id: "billing" });
  await issue(suite.rest, { name: "other", actor_id: "team_42" });
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/keys");
  for (const text of ["invoice", record.hint.slice(-4), "billing", keyId]) {
    await page.getByRole("textbox", { name: "Search keys" }).fill(text);
    await page.keyboard.press("Enter");
    await page.getByText("1 key", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "invoice worker" }).count()).toBe(1);
    await page.reload();
    await page.getByText("1 key", { exact: true }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "other" }).waitFor();
  }
});

test("what is searched is found as it is: stars, quotes and backslashes have no other meaning", async () => {
  const names = ["a*", "ab", 'say "hi"', "back\\slash"];
  for (const name of names) await issue(suite.rest, { name, actor_id: "searched" });
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/verify");
  for (const [text, found] of [
    ["a*", ["a*"]],
    ['say "', ['say "hi"']],
    ["back\\", ["back\\slash"]],
  ] as const) {
    await page.goto(`${suite.server.url}/console/keys?filter=actor_id="searched"`);
    await page.getByText(`${names.length} keys`, { exact: true }).waitFor();
    await page.getByRole("textbox", { name: "Search keys" }).fill(text);
    await page.keyboard.press("Enter");
    await page.getByText("1 key", { exact: true }).waitFor();
    for (const name of found) await page.getByRole("link", { name, exact: true }).waitFor();
  }
});

test("a person who goes back while a page still loads sees the page before", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/verify");
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Keys" }).waitFor();
  // The page itself, and who the caller is.
  const held: Route[] = [];
  await page.route(/\/assets\/keys-[^/]*\.js$|\/WhoAmI$/, (route) => void held.push(route));
  await page.reload();
  await expect.poll(() => held.length).toBe(2);
  await page.evaluate("history.back()");
  await page.waitForURL("**/verify");
  await Promise.all(held.map((route) => route.continue()));
  await page.getByRole("heading", { level: 1, name: "Verify" }).waitFor();
});

test("the list is accessible", async () => {
  await issue(suite.rest, { name: "deploy bot" });
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit({ token: suite.token("keyhold:admin"), colorScheme }, "/keys?filter=status=active");
    await page.getByRole("link", { name: "deploy bot" }).first().waitFor();
    await expectAccessible(page);
  }
});

test("a list that fails after seconds is not repeated unless the person wants it", async () => {
  suite.expectMessages(/503 \(Service Unavailable\)/);
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/verify");
  const statuses: number[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("/ListApiKeys")) statuses.push(response.status());
  });
  const link = page.getByRole("link", { name: "Keys", exact: true });
  await link.waitFor();
  await suite.sql.begin(async (lock) => {
    await lock`LOCK TABLE api_keys`;
    await link.click();
    await page.getByRole("alert").getByText("the database did not respond in time").waitFor();
  });
  expect(statuses).toEqual([503]);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("alert").waitFor({ state: "detached" });
});

/** Fails each statement that reads the row of a key by this name, as after a statement timeout. */
const FAILING_POLICY = `
  CREATE FUNCTION time_out() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'canceled' USING ERRCODE = 'query_canceled';
  END $$;
  CREATE POLICY timeout_by_name ON api_keys USING (CASE WHEN name = 'slow list' THEN time_out() ELSE true END);
  ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY`;

test("a search that fails is called once, and the page shows what to change", async () => {
  await issue(suite.rest, { name: "slow list", actor_id: "slow" });
  await suite.sql.unsafe(FAILING_POLICY);
  suite.expectMessages(/400 \(Bad Request\)/);
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/verify");
  const statuses: number[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("/ListApiKeys")) statuses.push(response.status());
  });
  for (const [filter, message] of [
    ['actor_id="slow"', /^filter: selects too few of too many keys; add a condition on actor_id,/],
    ['name="*7*"', /^filter: .*a wildcard is allowed only at the end of a name value,/],
  ] as const) {
    await page.goto(`${suite.server.url}/console/keys?filter=${encodeURIComponent(filter)}`);
    await page.getByRole("alert").getByText(message).waitFor();
    expect(statuses.splice(0)).toEqual([400]);
  }
});
