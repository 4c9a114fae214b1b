import { startChromium } from "../support/programs/chromium.ts";
import type { Server } from "./servers.ts";
import { whileServing } from "./service-process.ts";
import type { Check } from "./tap.ts";

/** Milliseconds for one action on a page. Beside other suites, a click has taken more than the default of 30 s. */
const ACTION_TIMEOUT = 120_000;

/** Starts an application that embeds the key page, and creates a key in Chromium, also after the end of a session. */
export async function checkKeyPage(name: string, script: string, cwd: string, { env }: Server): Promise<Check> {
  const url = String(env.KEYHOLD_EMBEDDING_ORIGIN);
  const service = { script, cwd, env: { ...env, PORT: new URL(url).port }, url };
  const comment = await whileServing(service, () => createInSessions(url)).catch(String);
  return { name: `example ${name}: an owner creates keys`, holds: comment === "", comment };
}

/** Returns what has failed; empty: nothing. */
async function createInSessions(url: string): Promise<string> {
  const browser = await startChromium();
  try {
    const page = await browser.newPage({ locale: "en" });
    page.setDefaultTimeout(ACTION_TIMEOUT);
    const errors: string[] = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url);
    const frame = page.locator("keyhold-key-page iframe").contentFrame();
    const create = async (key: string) => {
      await frame.getByRole("button", { name: "New key" }).click();
      await frame.getByRole("textbox", { name: "Name" }).fill(key);
      await frame.getByRole("button", { name: "Create key" }).click();
      await frame.getByRole("button", { name: "Done" }).click();
      await frame.getByText(key, { exact: true }).waitFor();
    };
    await create("first");
    // Without its cookie the session has ended, which the next call finds.
    await page.context().clearCookies();
    const open = page.getByRole("button", { name: "Show the keys" });
    await frame.getByRole("button", { name: "New key" }).click();
    await frame.getByRole("textbox", { name: "Name" }).fill("rejected");
    await frame.getByRole("button", { name: "Create key" }).click();
    await open.click();
    await frame.getByText("first", { exact: true }).waitFor();
    await create("second");
    return errors.filter((error) => !/status of 401/.test(error)).join("\n");
  } finally {
    await browser.close();
  }
}
