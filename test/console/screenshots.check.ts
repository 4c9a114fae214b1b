import { readdirSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { createKeyPage } from "../support/key-pages.ts";
import { renderedDocs, useConsole, type Visitor } from "./console.ts";
import { addExampleData, type ExampleData } from "./example-data.ts";
import { smallPng } from "./small-png.ts";

/** The folder to which pictures of the pages are written; without it the pages must only show. Those of the documentation are in `PUBLISHED`. */
const { KEYHOLD_SCREENSHOTS: target } = process.env;

const PUBLISHED = new URL("../../docs/images/console/", import.meta.url).pathname;

/** Bytes of all pictures together, which every clone has. */
const MAX_SIZE = 1_000_000;

/** Of the key page, whose path is a link that opens it. */
interface OwnersPicture {
  readonly name: string;
  readonly visitor: Omit<Visitor, "token">;
}

interface Picture extends Omit<Visitor, "token"> {
  readonly name: string;
  readonly isSignedOut?: true;
  path(data: ExampleData): string;
  /** Does what the picture shows, and waits for it. */
  show(page: Page, data: ExampleData): Promise<unknown>;
}

/** Waits for a text of the page. */
const text = (content: string | RegExp) => (page: Page) => page.getByText(content).first().waitFor();

const plot = (page: Page) => page.getByRole("img", { name: /last/ }).locator("path").first().waitFor();

const CSV = `raw_key,name,actor_id,scopes,metadata.plan
pk_live_4f9a61d2c7e84b0f,Hooli: production,customer/hooli,read write,gold
pk_live_b1d7330ea95c4d26,Hooli: staging,customer/hooli,read,gold
pk_live_93c2f0b7d15e4a88,Umbrella: reports,customer/umbrella,read,silver
pk_live_93c2f0b7d15e4a88,Umbrella: duplicate,customer/umbrella,read,silver
`;

const PICTURES: readonly Picture[] = [
  {
    ...{ name: "overview", path: () => "/" },
    show: async (page) => {
      await plot(page);
      await page.getByRole("table", { name: "Recent changes" }).getByText("key.rotated").waitFor();
    },
  },
  { name: "keys", path: () => "/keys?filter=status=active", show: text("deploy bot") },
  { name: "keys-narrow", width: 360, path: () => "/keys?filter=status=active", show: text("deploy bot") },
  {
    ...{ name: "new-key", path: () => "/keys/new" },
    show: async (page) => {
      await page.getByRole("textbox", { name: "Name" }).fill("deploy bot");
      await page.getByRole("textbox", { name: "Actor" }).fill("team-platform");
      await page.getByRole("combobox", { name: "Scopes" }).fill("deploy");
      await page.keyboard.press("Enter");
    },
  },
  {
    ...{ name: "import", path: () => "/keys/import" },
    show: async (page) => {
      const buffer = Buffer.from(CSV);
      await page.locator("input[type=file]").setInputFiles({ name: "keys.csv", mimeType: "text/csv", buffer });
      await text("3 keys of 2 actors can be imported")(page);
    },
  },
  { name: "key", path: ({ keyIds }) => `/keys/${keyIds["deploy bot"]}`, show: plot },
  {
    ...{ name: "verify", path: () => "/verify" },
    show: async (page, { secret }) => {
      await page.getByRole("textbox", { name: "Credential" }).fill(secret);
      await page.getByRole("combobox", { name: "Required scopes" }).fill("admin");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Explain" }).click();
      await text(/would be rejected/)(page);
    },
  },
  { name: "actors", path: () => "/actors", show: text("customer/globex") },
  { name: "actor", path: () => "/actors/customer%2Facme", show: plot },
  { name: "usage", colorScheme: "dark", path: () => "/usage?period=30d", show: plot },
  { name: "audit", path: () => "/audit", show: text("key.rotated") },
  {
    ...{ name: "audit-event", colorScheme: "dark", path: ({ revocationSeq }) => `/audit/${revocationSeq}` },
    show: text("The checkpoint is signed with the key of the log."),
  },
  { name: "webhooks", path: () => "/webhooks", show: text("siem") },
  { name: "webhook", path: () => "/webhooks/tickets", show: text("key.revoked") },
  { name: "hmac-keys", path: () => "/hmac-keys", show: text("partner-portal") },
  {
    ...{ name: "api-reference", path: () => `${suite.server.url}/docs` },
    show: async (page) => {
      await renderedDocs(page);
      const operation = page.locator(".opblock", { hasText: "Lists all endpoints" });
      await operation.locator(".opblock-summary-control").click();
      await operation.getByLabel("Language").selectOption("TypeScript");
      await operation.locator(".response code").first().waitFor();
      await operation.evaluate((element) => element.scrollIntoView());
    },
  },
  // Last, because the audit log has each call that is denied.
  {
    ...{ name: "sign-in", isSignedOut: true, path: () => "/" },
    show: (page) => page.getByRole("textbox", { name: "Admin token" }).waitFor(),
  },
];

const OF_OWNERS: readonly OwnersPicture[] = [
  { name: "key-page", visitor: {} },
  { name: "key-page-narrow", visitor: { width: 360, colorScheme: "dark" } },
];

const suite = useConsole(() => ({
  ...{
    KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    KEYHOLD_KEY_PAGES_NAME: "Acme Cloud",
    KEYHOLD_KEY_PAGES_COLOR: "#6d28d9",
  },
}));

let data: ExampleData;
beforeAll(async () => {
  data = await addExampleData(suite);
});

test.each(table(PICTURES))("the page of $name shows", async ({ name, isSignedOut, path, show, ...visitor }) => {
  if (isSignedOut) suite.expectMessages(/401 \(Unauthorized\)/);
  const token = isSignedOut ? null : suite.token("keyhold:admin");
  const page = await suite.visit({ token, reducedMotion: "reduce", ...visitor }, path(data));
  await show(page, data);
  await take(page, name);
});

test.each(table(OF_OWNERS))("the owner of keys sees $name", async ({ name, visitor }) => {
  const fields = { actor_id: "customer/acme", allowed_scopes: ["read", "write"], return_url: "https://app.example" };
  const link = (await createKeyPage(suite.as(suite.token("keyhold:key-pages")), fields)).url;
  const page = await suite.visit({ token: null, reducedMotion: "reduce", ...visitor }, link);
  await page.getByRole("article").first().waitFor();
  await take(page, name);
});

/** Writes a picture of the page if a folder is given. */
async function take(page: Page, name: string): Promise<void> {
  await page.waitForLoadState("networkidle");
  if (target === undefined) return;
  const picture = await page.screenshot({ animations: "disabled" });
  await writeFile(join(target, `${name}.png`), smallPng(picture));
}

test("the documentation has a picture of each page", () => {
  const files = readdirSync(PUBLISHED);
  expect(files.sort()).toEqual([...PICTURES, ...OF_OWNERS].map(({ name }) => `${name}.png`).sort());
  const size = files.reduce((sum, file) => sum + statSync(join(PUBLISHED, file)).size, 0);
  expect(size).toBeLessThan(MAX_SIZE);
});
