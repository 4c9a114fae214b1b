import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { inHours, issue, paths, verify } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

/** A server that stops stores what it has counted. Sessions outlive it. */
const stored = () => suite.server.restart({ KEYHOLD_AUTH: "admin-token" });

const verifyTimes = async (secret: string, times: number) => {
  for (let n = 0; n < times; n++) await verify(suite.rest, secret);
};

/** Returns the texts of the rows of a table, cell by cell. */
async function rowsOf(page: Page, name: RegExp): Promise<string[][]> {
  const rows = page.getByRole("table", { name }).getByRole("row");
  await rows.nth(1).waitFor();
  return Promise.all(
    (await rows.all()).map((row) => row.getByRole("cell").or(row.getByRole("columnheader")).allInnerTexts()),
  );
}

/** Returns the numbers of the plot's table by their column; the table has one row. */
async function plotted(page: Page): Promise<Record<string, string>> {
  await page.getByRole("img", { name: /last/ }).waitFor();
  await page.getByRole("switch", { name: "Show as a table" }).check();
  const [header = [], ...rows] = await rowsOf(page, /last/);
  expect(rows).toHaveLength(1);
  return Object.fromEntries(header.slice(1).map((name, index) => [name, rows[0]?.[index + 1] ?? ""]));
}

const expectNoOverflow = async (page: Page) =>
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);

test("limits that are set on the page are seen in the usage of the keys that they hit", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/actors");
  await page.getByRole("textbox", { name: "Open an actor" }).fill("team/42");
  await page.keyboard.press("Enter");
  await page.getByText("No limits are set for this actor.").waitFor();
  await page.getByRole("button", { name: "Add rate limit" }).click();
  const limit = page.getByRole("group", { name: "Rate limit 1" });
  await limit.getByRole("textbox", { name: "Name" }).fill("requests");
  await limit.getByRole("spinbutton", { name: "Verifications" }).fill("2");
  await limit.getByRole("textbox", { name: "Window" }).fill("a day");
  await page.getByRole("button", { name: "Add quota" }).click();
  const quota = page.getByRole("group", { name: "Quota 1" });
  await quota.getByRole("textbox", { name: "Name" }).fill("monthly");
  await quota.getByRole("spinbutton", { name: "Verifications" }).fill("1000");
  suite.expectMessages(/status of 400/);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").waitFor();
  await expectAccessible(page);
  await limit.getByRole("textbox", { name: "Window", description: /duration/ }).fill("24h");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The limits are saved.").waitFor();
  await page.reload();
  expect(await limit.getByRole("textbox", { name: "Window" }).inputValue()).toBe("24h");
  expect(await limit.getByRole("spinbutton", { name: "Burst" }).inputValue()).toBe("");

  const limited = await issue(suite.rest, { name: "invoice worker", actor_id: "team/42" });
  const other = await issue(suite.rest, { name: "deploy bot", actor_id: "acme" });
  await verifyTimes(limited.secret, 5);
  await verifyTimes(other.secret, 3);
  await suite.rest("POST", `${paths.keys}/${other.keyId}:disable`, {});
  await verifyTimes(other.secret, 1);
  await stored();

  await page.goto(`${suite.server.url}/console/usage`);
  expect(await plotted(page)).toEqual({ Total: "9", Accepted: "5", "Rate-limited": "3", Disabled: "1" });
  await page.getByRole("combobox", { name: "List by" }).selectOption("Key");
  await page.getByRole("link", { name: "invoice worker" }).waitFor();
  expect((await rowsOf(page, /by key/)).map((cells) => cells.slice(0, 3))).toEqual([
    ["Key", "Verifications", "Share"],
    ["invoice worker", "5", "55.6%"],
    ["deploy bot", "4", "44.4%"],
  ]);
  await page.getByRole("link", { name: "Only this key" }).first().click();
  await page.getByText("Verifications: 5").waitFor();
  await page.reload();
  expect(await plotted(page)).toEqual({ Total: "5", Accepted: "2", "Rate-limited": "3" });
  await page.goBack();
  await page.getByText("Verifications: 9").waitFor();
  await page.getByRole("textbox", { name: "Actor" }).fill("acme");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Verifications: 4").waitFor();
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByText("Verifications: 9").waitFor();
  await page.getByRole("combobox", { name: "List by" }).selectOption("Limit");
  await page.getByRole("columnheader", { name: "Units of limits" }).waitFor();
  expect(await plotted(page)).toEqual({ monthly: "2", requests: "2" });
  await page.getByRole("combobox", { name: "List by" }).selectOption("Actor");
  await page.getByRole("link", { name: "team/42" }).click();
  await page.getByRole("heading", { name: "team/42" }).waitFor();
  expect(await plotted(page)).toEqual({ Total: "5", Accepted: "2", "Rate-limited": "3" });
  await page.getByRole("link", { name: "Keys of this actor" }).click();
  await page.getByRole("link", { name: "invoice worker" }).waitFor();
});

test("a quota is charged and refunded, and all limits are deleted after a confirmation", async () => {
  const { secret } = await issue(suite.rest, { actor_id: "plan" });
  const quotas = [{ name: "daily", limit: 10, period: "QUOTA_PERIOD_DAY" }];
  await suite.rest("PATCH", `${paths.actors}/plan?update_mask=quotas`, { quotas });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "/actors?actor=pl");
  await page.getByRole("link", { name: "plan" }).click();
  const adjust = async (direction: "Charge" | "Refund") => {
    await page.getByRole("button", { name: "Adjust a quota" }).click();
    const dialog = page.getByRole("dialog", { name: "Adjust what is used" });
    await dialog.getByText(direction, { exact: true }).first().click();
    await dialog.getByRole("textbox", { name: "Verifications" }).fill("10");
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await page.getByText("The quota daily is adjusted.").waitFor();
  };
  await adjust("Charge");
  expect((await verify(suite.rest, secret)).error_code).toBe("VERIFICATION_ERROR_QUOTA_EXCEEDED");
  await adjust("Refund");
  expect((await verify(suite.rest, secret)).is_valid).toBe(true);
  const dialog = page.getByRole("dialog", { name: "Delete all limits" });
  await page.getByRole("button", { name: "Delete all limits …" }).click();
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  expect((await suite.rest("GET", `${paths.actors}/plan`)).status).toBe(200);
  await page.getByRole("button", { name: "Delete all limits …" }).click();
  await dialog.getByRole("button", { name: "Delete all limits" }).click();
  await page.getByText("No limits are set for this actor.").waitFor();
  expect(await page.getByRole("group", { name: "Quota 1" }).count()).toBe(0);
  expect((await suite.rest("GET", `${paths.actors}/plan`)).status).toBe(404);
});

test("the overview warns of unusual failures, and counts the keys that expire", async () => {
  const [{ keyId, secret }] = await Promise.all([
    issue(suite.rest, { name: "soon", expire_time: inHours(24), scopes: ["read"] }),
    issue(suite.rest, { name: "later", expire_time: inHours(24 * 20) }),
  ]);
  await suite.sql`UPDATE usage_log SET first_day = least(first_day, (now() AT TIME ZONE 'UTC')::date - 3)`;
  const [{ day } = { day: "" }] = await suite.sql`SELECT ((now() AT TIME ZONE 'UTC')::date - 3)::text AS day`;
  await suite.sql.unsafe(`CREATE TABLE key_usage_before PARTITION OF key_usage
    FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`);
  await suite.sql`INSERT INTO key_usage VALUES (${keyId}, 100, ${day}, 'VALID', '[12:12]={100}')`;
  for (let n = 0; n < 12; n++)
    await suite.rest("POST", `${paths.keys}:verify`, { credential: secret, required_scopes: ["write"] });
  await stored();
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, "");
  const warning = page.getByRole("alert", { name: "More verifications fail than usual" });
  await warning.getByText("In the week before it was 0%.").waitFor();
  await warning.getByText("Most frequent reason: Missing scope").waitFor();
  await page.getByRole("table", { name: "Recent changes" }).getByText("key.issued").first().waitFor();
  await warning.getByRole("link", { name: "Which keys fail?" }).click();
  await page.getByRole("link", { name: "soon" }).waitFor();
  expect((await rowsOf(page, /by key/))[1]?.[1]).toBe("12");
  await page.goBack();
  const expiring = page.getByRole("region", { name: "Active keys that expire" });
  expect((await expiring.innerText()).replaceAll(/\s+/g, " ")).toContain("1 within 7 days 2 within 30 days");
  await expiring.getByRole("link", { name: "within 7 days" }).click();
  await page.getByText("1 key", { exact: true }).waitFor();
});

test("callers see what they may use, and no more", async () => {
  await suite.rest("PATCH", `${paths.actors}/acme?update_mask=rate_limits`, {
    rate_limits: [{ name: "requests", quota: 60, window: "1m" }],
  });
  const reader = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/actors/acme");
  await reader.getByText("requests: 60 per 1m").waitFor();
  expect(await reader.getByRole("button", { name: /Add|Adjust|Delete|Save/ }).count()).toBe(0);
  await reader.getByRole("link", { name: "Overview" }).click();
  await reader.getByRole("region", { name: "Verifications in 24 hours" }).waitFor();
  expect(await reader.getByText("Recent changes").count()).toBe(0);
  const verifier = await suite.visit({ token: suite.token("keyhold:derive") }, "");
  await verifier.getByText(/Your credential permits no/).waitFor();
  expect(await verifier.getByRole("link", { name: "Usage" }).count()).toBe(0);
  await verifier.goto(`${suite.server.url}/console/usage`);
  await verifier.getByRole("heading", { name: "Not permitted" }).waitFor();
});

test("the pages are accessible, also on a phone", async () => {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit(
      { token: suite.token("keyhold:admin"), colorScheme, width: 360, reducedMotion: "reduce" },
      "",
    );
    const check = async () => {
      await expectAccessible(page);
      await expectNoOverflow(page);
    };
    for (const path of ["", "/usage", "/actors/team%2F42"]) {
      await page.goto(`${suite.server.url}/console${path}`);
      await plotted(page);
      await check();
    }
    for (const name of ["Adjust a quota", "Delete all limits"]) {
      await page.getByRole("button", { name }).click();
      await page
        .getByRole("dialog")
        .getByRole("button", { name: /Refund|Delete/ })
        .waitFor();
      await check();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
    }
    await page.goto(`${suite.server.url}/console/actors`);
    await page.getByRole("link", { name: "team/42" }).waitFor();
    await check();
  }
});
