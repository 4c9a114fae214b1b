import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { useConsole } from "./console.ts";

const suite = useConsole();

/** More than any page has. */
const MAX_TABS = 80;

/** Moves the focus to a control by Tab alone, as a person without a pointer does. */
async function tabTo(page: Page, control: Locator): Promise<void> {
  await control.waitFor();
  for (let n = 0; n < MAX_TABS; n++) {
    if (await control.evaluate((element) => element === element.ownerDocument.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not reach ${control}`);
}

async function press(page: Page, control: Locator): Promise<void> {
  await tabTo(page, control);
  await page.keyboard.press("Enter");
}

async function type(page: Page, control: Locator, text: string): Promise<void> {
  await tabTo(page, control);
  await page.keyboard.type(text);
}

test("a key is issued, rotated and revoked by the keyboard alone, over the paths that a reverse proxy must pass", async () => {
  const page = await suite.visit({ token: null }, "/");
  suite.expectMessages(/401 \(Unauthorized\)/);
  const called = new Set<string>();
  page.on("request", (request) => called.add(new URL(request.url()).pathname));
  const button = (name: string, within: Page | Locator = page) => within.getByRole("button", { name, exact: true });
  await type(page, page.getByRole("textbox", { name: "Admin token" }), suite.token("keyhold:admin"));
  await page.keyboard.press("Enter");
  await press(page, page.getByRole("link", { name: "Keys", exact: true }));
  await press(page, page.getByRole("link", { name: "New key" }));
  await type(page, page.getByRole("textbox", { name: "Name" }), "by keyboard");
  await type(page, page.getByRole("textbox", { name: "Actor" }), "team_42");
  await press(page, button("Create key"));
  const dialog = page.getByRole("dialog");
  await press(page, button("Done", dialog));
  await page.getByRole("heading", { level: 1, name: "by keyboard" }).waitFor();
  await press(page, button("Rotate the secret"));
  await press(page, button("Rotate the secret", dialog));
  await press(page, button("Done", dialog));
  await page.getByRole("table", { name: "Previous secrets" }).waitFor();
  await press(page, button("Revoke"));
  await type(page, dialog.getByRole("combobox", { name: "Reason" }), "The key is compromised");
  await type(page, dialog.getByRole("textbox", { name: /^Type by keyboard/ }), "by keyboard");
  await press(page, button("Revoke", dialog));
  await page.getByText("The current secret would be rejected: the key is revoked").waitFor();
  const others = [...called].filter((path) => !path.startsWith("/console/"));
  expect(others).toEqual(["/keyhold.v2alpha1.CallersService/WhoAmI"]);
});
