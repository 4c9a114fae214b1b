import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { issue } from "../support/rest.ts";
import { useConsole } from "./console.ts";
import { inspect } from "./inspect.ts";

const suite = useConsole();

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const closed = (page: Page) => page.getByRole("dialog").waitFor({ state: "detached" });

test("a page forgets every secret as soon as it is no longer shown", async () => {
  const token = suite.token("keyhold:admin");
  const { secret: credential } = await issue(suite.rest);
  const page = await suite.visit({ token: null }, "/");
  suite.expectMessages(/status of 401/);
  const { find } = await inspect(page);
  await page.getByRole("textbox", { name: "Admin token" }).fill(token);
  await button(page, "Sign in").click();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await expect.poll(() => find({ token })).toEqual([]);

  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("link", { name: "New key" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("new key");
  await page.getByRole("textbox", { name: "Actor" }).fill("team_42");
  await button(page, "Create key").click();
  // Not by an expression: the last match of one stays in memory.
  const shown = page.getByRole("dialog").locator("pre").first();
  const created = await shown.innerText();
  expect(created).toMatch(/^kh_v1_/);
  // While it is shown, it is in memory, and nowhere else.
  expect(await find({ created })).toEqual(["created: memory"]);
  await button(page, "Done").click();
  await page.getByRole("heading", { level: 1, name: "new key" }).waitFor();
  await closed(page);
  await expect.poll(() => find({ created, token })).toEqual([]);

  await button(page, "Rotate the secret").click();
  await page.getByRole("dialog").getByRole("button", { name: "Rotate the secret" }).click();
  await page.getByRole("dialog", { name: "The key has a new secret" }).waitFor();
  const rotated = await shown.innerText();
  await button(page, "Done").click();
  await closed(page);
  await expect.poll(() => find({ rotated, created })).toEqual([]);

  await page.getByRole("link", { name: "Webhooks" }).click();
  await button(page, "New endpoint").click();
  await page.getByRole("textbox", { name: "Endpoint id" }).fill("orders");
  await page.getByRole("textbox", { name: "URL" }).fill("https://orders.example/");
  await page.getByRole("checkbox", { name: "key.deleted" }).check();
  await button(page, "Create").click();
  const webhook = await shown.innerText();
  await button(page, "Close").last().click();
  await closed(page);
  await page.getByRole("link", { name: "orders" }).click();
  await button(page, "Rotate secret").click();
  await button(page, "Rotate").click();
  const newWebhook = await shown.innerText();
  expect(newWebhook).not.toBe(webhook);
  await page.keyboard.press("Escape");
  await closed(page);
  await expect.poll(() => find({ webhook, newWebhook })).toEqual([]);

  await page.getByRole("link", { name: "HMAC keys" }).click();
  const hmac = randomBytes(32).toString("hex");
  await button(page, "New HMAC key").click();
  await page.getByRole("textbox", { name: "HMAC key id" }).fill("old-system");
  await page.getByRole("textbox", { name: "Key", exact: true }).fill(hmac);
  await button(page, "Store").click();
  await page.getByText("old-system").waitFor();
  await closed(page);
  await page.getByRole("link", { name: "Verify" }).click();
  await page.getByRole("textbox", { name: "Credential" }).fill(credential);
  await page.keyboard.press("Enter");
  await page.getByText("The credential would be accepted.").waitFor();
  expect(await page.getByRole("textbox", { name: "Credential" }).inputValue()).toBe("");
  await expect.poll(() => find({ credential, hmac, newWebhook, webhook, rotated, created, token })).toEqual([]);
});

test("nothing that one person has read stays in memory for the next one", async () => {
  const [value, actor] = [randomBytes(16).toString("hex"), randomBytes(16).toString("hex")];
  await issue(suite.rest, { name: "x", actor_id: actor, metadata: { note: value } });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/keys");
  suite.expectMessages(/status of 401/);
  const { find } = await inspect(page);
  await page.getByText(actor).waitFor();
  await page.getByRole("link", { name: "x", exact: true }).click();
  await page.getByText(value).waitFor();
  await button(page, "Disable").click();
  const reason = randomBytes(16).toString("hex");
  await page.getByRole("dialog").getByRole("textbox").fill(reason);
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await page.getByText(reason).first().waitFor();
  await page.getByRole("button", { name: "Session and settings" }).click();
  await button(page, "Sign out").click();
  await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  await expect.poll(() => find({ value, actor, reason })).toEqual([]);
});
