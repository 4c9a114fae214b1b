import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { newRawKey } from "../support/conformance.ts";
import { issue, paths, verify } from "../support/rest.ts";
import { expectAccessible, useConsole, type Visitor } from "./console.ts";

const suite = useConsole();

const IMPORT = "ImportedApiKeysService/BatchCreateImportedApiKeys";

const openPage = (visitor: Partial<Visitor> = {}) =>
  suite.visit({ token: suite.token("keyhold:keys.import"), ...visitor }, "/keys/import");

async function choose(page: Page, text: string): Promise<void> {
  const buffer = Buffer.from(text);
  await page.locator("input[type=file]").setInputFiles({ name: "keys.csv", mimeType: "text/csv", buffer });
}

/** Returns what the page sends from now on. */
function recordRequests(page: Page): { url: string; body: string }[] {
  const sent: { url: string; body: string }[] = [];
  page.on("request", (request) => sent.push({ url: request.url(), body: request.postData() ?? "" }));
  return sent;
}

/** Returns a result of the import by its name. */
const result = (page: Page, name: string) =>
  page
    .locator("dl dt", { hasText: new RegExp(`^${name}$`) })
    .locator("xpath=following-sibling::dd[1]")
    .textContent();

const results = async (page: Page) => {
  await page.getByText("Import ended").waitFor();
  const names = ["Imported", "Already there", "Not imported", "Not sent"];
  return Promise.all(names.map((name) => result(page, name)));
};

const storedOf = async (actor: string) => {
  const [row] = await suite.sql`SELECT count(*)::int FROM api_keys WHERE actor_id = ${actor}`;
  return row?.count;
};

const newActor = () => `import-${newRawKey().slice(-12)}`;

test("a file is previewed, imported after the confirmation, and what failed is said without raw keys", async () => {
  const actor = newActor();
  const [good, other, known, late] = [newRawKey(), newRawKey(), newRawKey(), newRawKey()];
  await suite.rest("POST", paths.imported, { raw_key: known, name: "known", actor_id: actor });
  const { secret: token } = await issue(suite.rest, { scopes: ["keyhold:keys.read", "keyhold:keys.import"] });
  const page = await suite.visit({ token }, "/keys");
  await page.getByRole("link", { name: "Import keys" }).click();
  await page.getByRole("heading", { name: "Import keys" }).waitFor();
  const sent = recordRequests(page);
  const rows = [
    `${good},portal,${actor},read write,,7,x`,
    `${other},"multi, name",${actor},,90d,8,x`,
    `${good},again,${actor},,,9,x`,
    `,empty,${actor},,,10,x`,
    `${late},late,${actor},,2020-01-01,11,x`,
    `${known},known,${actor},,,12,x`,
    `${newRawKey()},too few,${actor}`,
    `${late},reserved,${actor},keyhold:admin,,13,x`,
  ];
  await choose(page, `raw_key,name,actor_id,scopes,ttl,id,colour\r\n${rows.join("\r\n")}\r\n`);
  await page.getByText("Not ready to import").waitFor();
  await page.getByLabel("Imported as: column id").selectOption({ label: "metadata.id" });
  await page.getByRole("button", { name: "Do not import the other columns" }).click();
  await page.getByText("8 rows · 4 keys of 1 actor can be imported · 4 rows cannot be imported").waitFor();
  const preview = page.getByRole("table", { name: "The first 4 keys" });
  expect(await preview.getByRole("row").nth(1).getByRole("cell").allTextContents()).toEqual([
    ...["2", `••••${good.slice(-4)}`, "portal", actor],
    ...["read write", "never", "id=7"],
  ]);
  const failed = page.getByRole("table", { name: "Rows that are not imported" });
  expect(await failed.getByRole("row").allTextContents()).toEqual([
    "LineProblem",
    "4raw_key: is the same as in line 2",
    "5raw_key: is required without raw_key_hash",
    expect.stringMatching(/^6ttl: must be a duration/),
    "8has 3 cells for 7 columns",
  ]);
  expect(sent.filter(({ url }) => url.includes("ImportedApiKeysService"))).toEqual([]);
  for (const { url, body } of sent) for (const rawKey of [good, other, late]) expect(url + body).not.toContain(rawKey);

  await page.getByRole("button", { name: "Import 4 keys" }).click();
  expect(await results(page)).toEqual(["2", "1", "5", "0"]);
  expect(await failed.getByRole("row").last().textContent()).toMatch(/^9managing a key with the scope keyhold:admin/);
  const html = await page.content();
  for (const rawKey of [good, other, known, late]) expect(html).not.toContain(rawKey);
  expect(await verify(suite.rest, good)).toMatchObject({
    is_valid: true,
    actor_id: actor,
    scopes: ["read", "write"],
    metadata: { id: "7" },
  });

  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy lines and problems" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  expect(copied.split("\n").map((line) => line.split("\t")[0])).toEqual(["4", "5", "6", "8", "9", ""]);
  await page.getByRole("button", { name: "Choose another file" }).click();
  await page.getByRole("button", { name: "CSV file" }).waitFor();
});

test("5,000 rows are imported once, although an answer is lost and the server is overloaded, and after a pause", async () => {
  const actor = newActor();
  const page = await openPage();
  suite.expectMessages(/Failed to load resource/);
  let [calls, lost] = [0, 0];
  await page.route(`**/*${IMPORT}`, async (route) => {
    calls++;
    if (calls === 2) {
      // The server imports the keys, but its answer is lost.
      const headers = { ...(await route.request().allHeaders()), "sec-fetch-site": "same-origin" };
      lost = (await route.fetch({ headers })).status();
      await route.abort();
    } else if (calls === 3) {
      await route.fulfill({ status: 503, headers: { "retry-after": "1" }, json: { code: "unavailable" } });
    } else if (calls === 5) {
      await page.getByRole("button", { name: "Pause" }).click();
      await route.continue();
    } else await route.continue();
  });
  const rows = Array.from({ length: 5_000 }, (_, index) => `${newRawKey()},row ${index},${actor}\n`);
  await choose(page, `raw_key,name,actor_id\n${rows.join("")}`);
  await page.getByRole("button", { name: "Import 5,000 keys" }).click();
  await page.getByText("The import goes on by itself").waitFor();
  await page.getByText("Paused", { exact: true }).waitFor();
  expect(await result(page, "Imported")).toBe("3,000");
  await page.getByRole("button", { name: "Continue" }).click();
  expect(await results(page)).toEqual(["5,000", "0", "0", "0"]);
  expect([lost, await storedOf(actor)]).toEqual([200, 5_000]);
});

test("a cancelled import keeps its results, and an error of the server pauses it", async () => {
  const actor = newActor();
  const page = await openPage();
  suite.expectMessages(/Failed to load resource/);
  await page.route(`**/*${IMPORT}`, (route) =>
    route.fulfill({ status: 403, json: { code: "permission_denied", message: "this caller may not" } }),
  );
  await choose(page, `raw_key,name,actor_id\n${newRawKey()},a,${actor}\n`);
  await page.getByRole("button", { name: "Import 1 key" }).click();
  await page.getByText("this caller may not").waitFor();
  await page.getByText("Paused", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  expect(await results(page)).toEqual(["0", "0", "0", "1"]);
});

test("unusable files are rejected with the reason", async () => {
  const page = await openPage();
  const unusable = [
    ["raw_key;name;actor_id\nx;y;z\n", "columns are separated by semicolons"],
    [`raw_key,name,actor_id\n${newRawKey()},"a,b\n`, "line 2 opens a quote that is never closed"],
    ["", "is empty"],
    [`${newRawKey()},a,b\n`, "Choose the column that has the raw keys"],
  ];
  for (const [text = "", reason = ""] of unusable) {
    await choose(page, text);
    await page.getByText(reason).waitFor();
    expect(await page.getByRole("button", { name: /^Import / }).count()).toBe(0);
  }
  await expectAccessible(page);
  // Without a header, the first line may have a raw key.
  const [, , , [text = ""] = []] = unusable;
  expect(await page.content()).not.toContain(text.split(",")[0]);
});

test("who may not import keys is not offered it", async () => {
  const token = suite.token("keyhold:keys.read");
  const page = await suite.visit({ token }, "/keys");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  expect(await page.getByRole("link", { name: "Import keys" }).count()).toBe(0);
  await page.goto(`${suite.server.url}/console/keys/import`);
  await page.getByText("Not permitted").waitFor();
});

test("the page is accessible, narrow and in German too", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await openPage({ colorScheme, width: 360, locale: "de" });
    const text = `raw_key,name,actor_id,note\n${newRawKey()},a,b,c\nshort,a,b,c\n"${newRawKey()},",a,b,c\n`;
    await page.getByText("Nichts davon wird gesendet").waitFor();
    await expectAccessible(page);
    await choose(page, text);
    await page.getByRole("button", { name: "Die übrigen Spalten nicht importieren" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Die übrigen Spalten nicht importieren" }).press("Enter");
    await page.getByText("2 Schlüssel von 1 Akteur importierbar").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "2 Schlüssel importieren" }).press("Enter");
    await page.getByText(/^Import beendet/).waitFor();
    await expectAccessible(page);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
  }
});
