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

test("the list is accessible", async () => {
  await issue(suite.rest, { name: "deploy bot" });
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit({ token: suite.token("keyhold:admin"), colorScheme }, "/keys?filter=status=active");
    await page.getByRole("link", { name: "deploy bot" }).first().waitFor();
    await expectAccessible(page);
  }
});
