import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { issue, paths, verify } from "../support/rest.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole();

test("an administrator signs in, creates a first key, and verifies it by the command that the page shows", async () => {
  const page = await suite.visit({ token: null }, "/");
  suite.expectMessages(/401 \(Unauthorized\)/);
  await expectAccessible(page);
  await page.getByRole("textbox", { name: "Admin token" }).fill(suite.token("keyhold:admin"));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("link", { name: "New key" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("first key");
  await page.getByRole("textbox", { name: "Actor" }).fill("team_42");
  await page.getByRole("combobox", { name: "Scopes" }).fill("deploy");
  await page.keyboard.press("Enter");
  await expectAccessible(page);
  await page.getByRole("button", { name: "Create key" }).click();
  const dialog = page.getByRole("dialog", { name: "The key is created" });
  const command = await dialog.locator("pre").nth(1).innerText();
  await expectAccessible(page);
  const env = { ...process.env, KEYHOLD_TOKEN: suite.token("keyhold:verify") };
  const { stdout } = await promisify(execFile)("sh", ["-c", command], { env });
  expect(JSON.parse(stdout)).toMatchObject({ is_valid: true, actor_id: "team_42", scopes: ["deploy"] });
  await dialog.getByRole("button", { name: "Done" }).click();
  await page.getByRole("heading", { level: 1, name: "first key" }).waitFor();
  await page.getByText("The current secret would be accepted now.").waitFor();
});

test("support finds a key by its last four characters, sees why it is rejected, and revokes it with a reason", async () => {
  const { keyId, secret, record } = await issue(suite.rest, { name: "billing export", actor_id: "customer_7" });
  await suite.rest("POST", `${paths.keys}/${keyId}:disable`, { reason: "unpaid invoice" });
  const token = await tokenWith("keyhold:keys.read", "keyhold:keys.revoke");
  const page = await suite.visit({ token }, "/keys");
  await page.getByRole("textbox", { name: "Search keys" }).fill(record.hint.slice(-4));
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "billing export" }).click();
  await page.getByText("The current secret would be rejected: the key is disabled").waitFor();
  expect(await page.getByText("unpaid invoice").isVisible()).toBe(true);
  expect(await page.getByRole("button", { name: /Edit|Rotate|Enable/ }).count()).toBe(0);
  await page.getByRole("button", { name: "Revoke" }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke" });
  await dialog.getByRole("combobox", { name: "Reason" }).selectOption("The key is compromised");
  await dialog.getByRole("textbox", { name: "Description" }).fill("found in a public repository");
  const confirm = dialog.getByRole("button", { name: "Revoke" });
  expect(await confirm.isDisabled()).toBe(true);
  await dialog.getByRole("textbox", { name: /^Type billing export/ }).fill("billing export");
  await expectAccessible(page);
  await confirm.click();
  await page.getByText("The current secret would be rejected: the key is revoked").waitFor();
  expect(await page.getByText("found in a public repository").isVisible()).toBe(true);
  expect(await page.getByRole("button", { name: "Revoke" }).count()).toBe(0);
  expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_REVOKED" });
});

test("a key is rotated with a grace period, its old secret watched until it is idle, and the grace period ended", async () => {
  const { keyId, secret } = await issue(suite.rest, { name: "worker", actor_id: "customer_8" });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, `/keys/${keyId}`);
  await page.getByRole("button", { name: "Rotate the secret" }).click();
  const dialog = page.getByRole("dialog", { name: "Rotate the secret" });
  await dialog.getByRole("button", { name: "Rotate the secret" }).click();
  const shown = page.getByRole("dialog", { name: "The key has a new secret" });
  const rotated = await shown.locator("pre").first().innerText();
  await shown.getByRole("button", { name: "Done" }).click();
  const previous = page.getByRole("table", { name: "Previous secrets" });
  await previous.getByText("not used").waitFor();
  expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: true });
  // The page reads again while an old secret is accepted; uses are recorded within 15 s.
  await previous.getByText("not used").waitFor({ state: "detached" });
  await expectAccessible(page);
  await page.getByRole("button", { name: "End the grace period" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End the grace period" }).click();
  await previous.waitFor({ state: "detached" });
  expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: false });
  expect(await verify(suite.rest, rotated)).toMatchObject({ is_valid: true });
});

test("a key is edited: only what differs is sent, and what the server rejects is at its field", async () => {
  const { keyId } = await issue(suite.rest, { name: "old name", metadata: { env: "prod" }, scopes: ["read"] });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, `/keys/${keyId}`);
  await page.getByRole("button", { name: "Edit" }).click();
  const dialog = page.getByRole("dialog", { name: "Edit the key" });
  await dialog.getByRole("textbox", { name: "Name" }).fill("new name");
  await dialog.getByRole("combobox", { name: "Accepted from" }).fill("203.0.113.7/24");
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog
    .getByText(/host bits/)
    .first()
    .waitFor();
  await expectAccessible(page);
  await page.getByRole("combobox", { name: "Accepted from" }).press("Backspace");
  await dialog.getByRole("combobox", { name: "Accepted from" }).fill("203.0.113.0/24");
  await page.keyboard.press("Enter");
  // Someone else changes another field meanwhile.
  await suite.rest("PATCH", `${paths.issued}/${keyId}`, { metadata: { env: "staging" } });
  suite.expectMessages(/Failed to load resource/);
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { level: 1, name: "new name" }).waitFor();
  const { body } = await suite.rest("GET", `${paths.issued}/${keyId}`);
  expect(body).toMatchObject({ name: "new name", scopes: ["read"], metadata: { env: "staging" } });
  expect(body.ip_restriction.allowed_cidrs).toEqual(["203.0.113.0/24"]);
});

test("all keys of a former customer are revoked, after their number was shown", async () => {
  const made = await Promise.all([1, 2, 3].map((n) => issue(suite.rest, { name: `key ${n}`, actor_id: "former" })));
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, '/keys?filter=actor_id="former"');
  await page.getByRole("button", { name: "Revoke all that match" }).click();
  const dialog = page.getByRole("dialog", { name: "Revoke all that match" });
  await dialog.getByText(/^3 keys match/).waitFor();
  await dialog.getByRole("combobox", { name: "Reason" }).selectOption("The owner's affiliation has changed");
  await dialog.getByRole("textbox", { name: "Type 3 to confirm" }).fill("3");
  await expectAccessible(page);
  await dialog.getByRole("button", { name: "Revoke all that match" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("revoked").nth(2).waitFor();
  for (const { secret } of made) expect(await verify(suite.rest, secret)).toMatchObject({ is_valid: false });
});

test("a credential is explained, and forgotten", async () => {
  const { secret, keyId } = await issue(suite.rest, { scopes: ["read"] });
  const page = await suite.visit({ token: suite.token("keyhold:keys.read") }, "/verify");
  await page.getByRole("textbox", { name: "Credential" }).fill(secret);
  await page.getByRole("combobox", { name: "Required scopes" }).fill("write");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByText(/would be rejected: .*write/).waitFor();
  expect(await page.getByRole("link", { name: keyId }).isVisible()).toBe(true);
  expect(await page.getByRole("row", { name: /^Scopes failed/ }).isVisible()).toBe(true);
  expect(await page.getByRole("textbox", { name: "Credential" }).inputValue()).toBe("");
  expect(page.url()).not.toContain(secret);
  await expectAccessible(page);
});

/** Returns an admin token with these scopes. */
async function tokenWith(...scopes: readonly string[]): Promise<string> {
  return (await issue(suite.rest, { name: "support", scopes })).secret;
}
