import { startChromium } from "../support/programs/chromium.ts";
import type { Server } from "./servers.ts";
import { whileServing } from "./service-process.ts";

/**
 * Serves the page of an example with a shell script, creates a key in Chromium and revokes it. Returns what the page has written then, any
 * error in its console, and the reason if it has not finished. The server allows the origin of the page.
 */
export async function drivePage(script: string, cwd: string, { env }: Server): Promise<string> {
  const url = String(env.KEYHOLD_EXAMPLE_ORIGIN);
  return whileServing({ script, cwd, env: { ...env, PORT: new URL(url).port }, url }, () => createAndRevoke(url));
}

async function createAndRevoke(url: string): Promise<string> {
  const browser = await startChromium();
  try {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url);
    const log = page.locator("#log");
    const done = async () => {
      await page.getByRole("button", { name: "Create" }).click();
      await log.getByText("the JWT is valid").waitFor();
      await page.getByRole("button", { name: "Revoke" }).click();
      await log.getByText("after the revocation").waitFor();
    };
    await done().catch((error) => errors.push(String(error)));
    return [await log.textContent(), ...errors].join("");
  } finally {
    await browser.close();
  }
}
