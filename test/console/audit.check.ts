import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { issue, paths } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

const revoke = (keyId: string, description: string) =>
  suite.rest("POST", `${paths.keys}/${keyId}:revoke`, {
    ...{ reason: "REVOCATION_REASON_KEY_COMPROMISE", revocation_description: description },
  });

const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

/** Returns the checks that a page shows, each as its outcome and text. */
async function checksOf(page: Page): Promise<string> {
  const list = page.getByRole("list", { name: "Verification" });
  await list.waitFor();
  return list.innerText();
}

test("an auditor finds who revoked a key, when, from where and why, and verifies that the log has it", async () => {
  const { keyId } = await issue(suite.rest, { name: "invoice worker", actor_id: "billing" });
  await revoke(keyId, "found in a public repository");
  const page = await suite.visit({ token: suite.token("keyhold:audit") }, "/audit");
  await page.getByRole("button", { name: "Revocations" }).click();
  await page.getByText("1 event", { exact: true }).waitFor();
  await page.getByRole("textbox", { name: "Search events" }).fill(keyId);
  await page.keyboard.press("Enter");
  await page.getByText(`key_id="${keyId}"`).waitFor();
  await page.reload();
  const found = row(page, "found in a public repository");
  expect(await found.innerText()).toMatch(/key\.revoked.*admin-token:.*127\.0\.0\.1/s);
  expect(await found.getByRole("link").count(), "no link to the key, which this caller may not read").toBe(1);
  await found.getByRole("link").click();
  await page.getByRole("heading", { name: /^Event \d+$/ }).waitFor();
  await page.getByRole("row", { name: /^revocation_description none found in a public repository$/ }).waitFor();
  for (const text of [keyId, "billing", "keyhold.v2alpha1.ApiKeysService/RevokeApiKey", "node"])
    expect(await page.getByText(text, { exact: true }).count(), text).toBeGreaterThan(0);
  expect(await checksOf(page)).toMatch(
    /^Verified\s+The log of \d+ events has this event as it is shown\.\s+Verified\s+The checkpoint is signed with the key of the log\.$/i,
  );
  await page.getByRole("link", { name: "of this key" }).click();
  await page.getByText("2 events", { exact: true }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: /^Event \d+$/ }).waitFor();
});

test("an event that the owner of the database changed does not match the log", async () => {
  const { keyId } = await issue(suite.rest);
  await revoke(keyId, "sold by mallory");
  const filter = encodeURIComponent(`key_id="${keyId}" AND action="key.revoked"`);
  const { seq } = (await suite.rest("GET", `${paths.auditEvents}?filter=${filter}`)).body.audit_events[0];
  const page = await suite.visit({ token: suite.token("keyhold:audit") }, `/audit/${seq}`);
  expect(await checksOf(page)).toMatch(/^Verified/i);
  await suite.sql`
    UPDATE audit_events SET after = after || '{"revocation_description": "rotated as planned"}' WHERE seq = ${seq}`;
  await page.reload();
  await page.getByText("rotated as planned").first().waitFor();
  expect(await checksOf(page)).toMatch(
    /^Does not match\s+The log of \d+ events does not have this event: it was changed, .*\s+Verified/i,
  );
  await expectAccessible(page);
});

const MEMORY = "keyhold-audit-checkpoint";

/** Changes the line of the checkpoint that the browser remembers: 0 is the key, 1 the log, 2 the size, 3 the root hash. */
const rewrite = (page: Page, line: number, text: string) =>
  page.evaluate(
    ([key, place, changed]) => {
      const lines = (localStorage.getItem(key) ?? "").split("\n");
      localStorage.setItem(key, lines.with(place, changed).join("\n"));
    },
    [MEMORY, line, text] as const,
  );

test("the log is verified against the checkpoint that the browser saw before, and one that is kept elsewhere", async () => {
  const keptElsewhere: string = (await suite.rest("GET", paths.auditCheckpoint)).body.checkpoint;
  const page = await suite.visit({ token: suite.token("keyhold:audit") }, "/audit");
  const verify = page.getByRole("button", { name: "Verify the log" });
  const check = async () => {
    await verify.click();
    const checks = await checksOf(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    return checks;
  };
  expect(await check()).toMatch(
    /^Verified\s+The checkpoint is signed.*Not checked\s+This browser has seen no earlier/is,
  );
  await issue(suite.rest);
  await page.reload();
  const continues =
    /^Verified\s+The checkpoint.*Verified\s+The key is the one.*Verified\s+Seen by this browser: The log continues the checkpoint of \d+ events/is;
  expect(await check()).toMatch(continues);
  const seen = await page.evaluate((key) => localStorage.getItem(key), MEMORY);
  const zeros = `${"A".repeat(43)}=`;
  for (const [line, text, message] of [
    [0, "keyhold/x+00000000+AAAA", /Does not match\s+Another key signs the log/i],
    [1, "keyhold/other", /Does not match\s+Seen by this browser: The earlier checkpoint is of another log/i],
    [
      2,
      "1000000",
      /Does not match\s+Seen by this browser: Events were removed from the end of the log: it had 1,000,000/i,
    ],
    [3, zeros, /Does not match\s+Seen by this browser: The log was rewritten/i],
  ] as const) {
    await page.evaluate(([key, value]) => localStorage.setItem(key, value), [MEMORY, seen ?? ""] as const);
    await rewrite(page, line, text);
    expect(await check()).toMatch(message);
  }
  // What does not match is not forgotten.
  await verify.click();
  await page.getByText("The log was rewritten").waitFor();
  await page.getByRole("button", { name: "Remember this checkpoint instead" }).click();
  await page.getByText("The log continues the checkpoint").waitFor();
  const kept = page.getByRole("textbox", { name: "Compare with a checkpoint that you keep elsewhere" });
  await kept.fill("no checkpoint");
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("This is not a checkpoint").waitFor();
  await kept.fill(keptElsewhere.replace(/(?<=\n\d+\n).*/, zeros));
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("Kept elsewhere: The log was rewritten").waitFor();
  await kept.fill(keptElsewhere);
  await page.getByRole("button", { name: "Compare" }).click();
  await page.getByText("Kept elsewhere: The log continues the checkpoint").waitFor();
});

test("a checkpoint with a forged signature does not match", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:audit") }, "/audit");
  const { body: head } = await suite.rest("GET", paths.auditCheckpoint);
  const json = { checkpoint: head.checkpoint.replace(/\n\d+\n/, "\n1\n"), verifierKey: head.verifier_key };
  await page.route("**/GetAuditCheckpoint", (route) => route.fulfill({ json }));
  await page.getByRole("button", { name: "Verify the log" }).click();
  expect(await checksOf(page)).toMatch(
    /^Does not match\s+The checkpoint is not signed with the key that the server states/i,
  );
  expect(await page.evaluate((key) => localStorage.getItem(key), MEMORY)).toBeNull();
});

test("a live list continues behind the last event after the server was restarted, and ends when it is switched off", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:audit") }, "/audit");
  let streams = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/WatchAuditEvents")) streams++;
  });
  const issued = async (actor: string) => {
    const { keyId } = await issue(suite.rest, { actor_id: actor });
    return row(page, keyId.slice(-12));
  };
  const live = page.getByRole("switch", { name: "Live" });
  await page.getByRole("button", { name: "Changes of keys" }).click();
  await live.click();
  await page.getByText("New events appear here").waitFor();
  await (await issued("first")).waitFor();
  expect(streams).toBe(1);
  suite.expectMessages(/net::ERR_|Failed to load resource/);
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_PORT: new URL(suite.server.url).port });
  const missed = await issued("second");
  await missed.waitFor();
  await page.getByText("New events appear here").waitFor();
  expect(streams, "few attempts").toBeLessThan(8);
  await (await issued("third")).waitFor();
  expect(await missed.count(), "each once").toBe(1);
  const ending = () => page.waitForEvent("requestfailed", (request) => request.url().endsWith("/WatchAuditEvents"));
  const show = (state: "hidden" | "visible") =>
    page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
      document.dispatchEvent(new Event("visibilitychange"))`);
  await Promise.all([ending(), show("hidden")]);
  const recorded = await issued("while hidden");
  await show("visible");
  await recorded.waitFor();
  await page.getByText("New events appear here").waitFor();
  await Promise.all([ending(), live.click()]);
  expect(new URL(page.url()).searchParams.has("live")).toBe(false);
});

test("who may not read the log does not see it", async () => {
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/audit");
  await page.getByText("Not permitted").waitFor();
  expect(await page.getByRole("link", { name: "Audit log" }).count()).toBe(0);
});

test("the pages are accessible, in both color schemes and on narrow screens", async () => {
  const { keyId } = await issue(suite.rest, { metadata: { note: "x".repeat(300) } });
  for (const colorScheme of ["light", "dark"] as const) {
    const visitor = { token: suite.token("keyhold:admin"), colorScheme, width: colorScheme === "dark" ? 360 : 1280 };
    const page = await suite.visit(visitor, `/audit?${new URLSearchParams({ filter: `key_id="${keyId}"` })}`);
    await page.getByText("1 event", { exact: true }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Verify the log" }).click();
    await checksOf(page);
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await row(page, "key.issued").getByRole("link").first().click();
    await checksOf(page);
    await expectAccessible(page);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  }
});
