import { expect, test } from "vitest";
import { hmacOf, importHashed } from "../support/hashed-keys.ts";
import { paths } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

const KEY = "the-key-of-hmacs";

test("an HMAC key is created, kept while an import needs it, and deleted", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/hmac-keys");
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "New HMAC key" }).click();
  await page.getByRole("textbox", { name: "HMAC key id" }).fill("legacy");
  await page.getByLabel(/^Key/).fill(KEY);
  suite.expectMessages(/status of 400/);
  await page.getByRole("button", { name: "Store" }).click();
  await dialog.getByRole("alert").waitFor();
  await page.getByRole("combobox", { name: "Encoding of the key" }).selectOption("Plain text (UTF-8)");
  await page.getByRole("button", { name: "Store" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("cell", { name: /^legacy/ }).waitFor();
  expect(await page.content()).not.toContain(KEY);

  await importHashed(suite.rest, {}, "raw key of the past", hmacOf("raw key of the past", "legacy", KEY));
  await suite.rest("POST", paths.hmacKeys, { hmac_key_id: "unused", key: "a2V5", encoding: "TEXT_ENCODING_BASE64" });
  await page.reload();
  await page.getByRole("row", { name: "legacy" }).getByText("needed").waitFor();
  expect(await page.getByRole("button", { name: "Delete the HMAC key legacy" }).count()).toBe(0);
  await page.getByRole("button", { name: "Delete the HMAC key unused" }).click();
  await page.getByRole("textbox", { name: "Type unused to confirm" }).fill("unused");
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("cell", { name: /^unused/ }).waitFor({ state: "detached" });
});

test("who may only read keys sees the list without changes, and the page is accessible", async () => {
  await suite.rest("POST", paths.hmacKeys, { hmac_key_id: "old", key: "a2V5", encoding: "TEXT_ENCODING_BASE64" });
  const reader = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/hmac-keys");
  await reader.getByRole("cell", { name: /^old/ }).waitFor();
  expect(await reader.getByRole("button", { name: /New HMAC key|Delete/ }).count()).toBe(0);
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit({ token: suite.token("keyhold:admin"), colorScheme, width: 360 }, "/hmac-keys");
    await page.getByRole("cell", { name: /^old/ }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "New HMAC key" }).click();
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  }
});
