import type { Locator, Page } from "playwright-core";
import type { Check } from "../tap.ts";
import { collect, type Ok } from "./checks.ts";
import type { Settings } from "./page/clients.ts";

/** Opens /docs and makes calls in it, as a person would. An error in the console or a violation of the page's policy is a failure. */
export async function checkDocs(page: Page, { baseUrl, token }: Settings): Promise<Check[]> {
  const problems = watchProblems(page);
  return collect(
    async (ok) => {
      await page.goto(`${baseUrl}/docs`);
      await authorize(page, token);
      ok("/docs: opens and takes a token", true);
    },
    (ok) => showCode(page, baseUrl, ok),
    (ok) => create(page, ok),
    (ok) => list(page, ok),
    (ok) => showBadRequest(page, ok),
    async (ok) => ok("/docs: no error in the console and none of its policy", problems.length === 0, problems),
  );
}

/** A call of this path shows an error. */
const BAD_REQUEST = "/v2alpha1/admin/importedApiKeys";

/** Collects errors of the page, except that Chromium reports the wanted error response as one. */
function watchProblems(page: Page): string[] {
  const problems: string[] = [];
  page.on("console", (message) => {
    const isWanted = message.text().includes("status of 400") && message.location().url.endsWith(BAD_REQUEST);
    if (/error|warning/.test(message.type()) && !isWanted) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("requestfailed", (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  return problems;
}

async function authorize(page: Page, token: string): Promise<void> {
  await page.getByRole("button", { name: "Authorize" }).first().click();
  const dialog = page.locator(".dialog-ux");
  await dialog.locator("#auth-bearer-value").fill(token);
  // The first scheme is the bearer token; the other is that of introspection.
  await dialog.getByRole("button", { name: "Apply credentials" }).first().click();
  await dialog.getByRole("button", { name: "Close" }).first().click();
}

function find(page: Page, method: string, path: string): Locator {
  return page.locator(`.opblock-${method.toLowerCase()}`, {
    has: page.locator(`.opblock-summary-path[data-path="${path}"]`),
  });
}

/** Opens an operation for a call. */
async function open(page: Page, method: string, path: string): Promise<Locator> {
  const operation = find(page, method, path);
  await operation.locator(".opblock-summary-control").click();
  await operation.getByRole("button", { name: "Try it out" }).click();
  return operation;
}

interface Shown {
  readonly status: string;
  readonly body: string;
}

/** Executes the call and returns the response that the page shows, after removing that of an earlier call. */
async function execute(operation: Locator): Promise<Shown> {
  const live = operation.locator(".live-responses-table .response");
  if (await live.isVisible()) {
    await operation.getByRole("button", { name: "Clear" }).click();
    await live.waitFor({ state: "detached" });
  }
  await operation.locator(".execute").click();
  const status = await live.locator(".response-col_status").innerText();
  return { status: status.trim(), body: await live.locator(".response-col_description pre").first().innerText() };
}

const KEYS = "/v2alpha1/admin/issuedApiKeys";

/** Opens an operation without parameters, and closes it again. */
async function showCode(page: Page, baseUrl: string, ok: Ok): Promise<void> {
  const operation = find(page, "GET", "/v2alpha1/admin/hmacKeys");
  await operation.locator(".opblock-summary-control").click();
  for (const language of ["curl", "TypeScript", "Python", "Go", "Java"]) {
    await operation.getByLabel("Language").selectOption({ label: language });
    const text = await operation.locator(".code-samples code").innerText();
    ok(`/docs: shows code in ${language} with the address of the server`, text.includes(baseUrl), text);
  }
  await operation.locator(".opblock-summary-control").click();
}

async function create(page: Page, ok: Ok): Promise<void> {
  const operation = await open(page, "POST", KEYS);
  const secrets: string[] = [];
  for (const time of ["first", "second"]) {
    const { status, body } = await execute(operation);
    const members = JSON.parse(body);
    const { secret = "" } = members;
    // Not the body, which contains a secret.
    const found = { status, members: Object.keys(members) };
    const holds = status === "200" && secret.startsWith("kh_v1_");
    ok(`/docs: the ${time} Execute of create returns a secret`, holds, found);
    secrets.push(secret);
  }
  ok("/docs: each Execute of create makes another key", new Set(secrets).size === secrets.length);
}

async function list(page: Page, ok: Ok): Promise<void> {
  const operation = await open(page, "GET", KEYS);
  const { status, body } = await execute(operation);
  const { issued_api_keys: keys } = JSON.parse(body);
  ok("/docs: Execute of list shows the keys", status === "200" && keys.length >= 2, { status, body });
}

async function showBadRequest(page: Page, ok: Ok): Promise<void> {
  const operation = await open(page, "POST", BAD_REQUEST);
  await operation.locator("textarea.body-param__text").fill('{"name": "no raw key"}');
  const { status, body } = await execute(operation);
  ok("/docs: an error is shown", status === "400" && body.includes('"raw_key"'), { status, body });
}
