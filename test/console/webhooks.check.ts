import { randomUUID } from "node:crypto";
import type { Locator, Page, Request } from "playwright-core";
import { Webhook } from "standardwebhooks";
import { afterEach, expect, test } from "vitest";
import { EVENT_TYPES } from "../../src/webhooks/event-types.ts";
import { succeeded } from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { type Answering, type Receiver, startReceiver } from "../support/webhook-receiver.ts";
import { expectAccessible, useConsole } from "./console.ts";

const suite = useConsole(() => ({ KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" }));

const receivers: Receiver[] = [];
const created: string[] = [];

afterEach(async () => {
  for (const id of created.splice(0)) await suite.rest("DELETE", `${paths.webhookEndpoints}/${id}`);
  for (const receiver of receivers.splice(0)) await receiver.close();
});

async function receive(answering?: Answering): Promise<Receiver> {
  const receiver = await startReceiver(answering);
  receivers.push(receiver);
  return receiver;
}

/** Creates an endpoint by the API. */
async function createEndpoint(fields: Json = {}, answering?: Answering) {
  const receiver = await receive(answering);
  const id = randomUUID();
  const body = { endpoint_id: id, url: receiver.url, event_types: ["key.revoked"], ...fields };
  const { secret } = succeeded(await suite.rest("POST", paths.webhookEndpoints, body));
  created.push(id);
  return { id, secret: secret as string, receiver };
}

/** Returns the requests of the page to an RPC that begin, or finish, from now on. */
function eventsOf(page: Page, event: "request" | "requestfinished", method: string): Request[] {
  const requests: Request[] = [];
  const add = (request: Request) => {
    if (request.url().endsWith(`/${method}`)) requests.push(request);
  };
  if (event === "request") page.on(event, add);
  else page.on(event, add);
  return requests;
}

const click = (page: Page, name: string | RegExp) => page.getByRole("button", { name, exact: true }).click();
const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

test("a person creates an endpoint, tests it, and delivers again what has failed", async () => {
  const receiver = await receive();
  const page = await suite.visit({ token: suite.token("keyhold:webhooks") }, "/webhooks");
  await click(page, "New endpoint");
  const types = await page.getByRole("checkbox").evaluateAll((boxes) => boxes.map((box) => box.getAttribute("value")));
  expect(types).toEqual(EVENT_TYPES);
  await page.getByRole("textbox", { name: "Endpoint id" }).fill("orders");
  created.push("orders");
  await page.getByRole("textbox", { name: "URL" }).fill("http://10.0.0.1/");
  await page.getByRole("checkbox", { name: "key.issued" }).check();
  suite.expectMessages(/status of 400/);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("KEYHOLD_WEBHOOK_ALLOW_CIDRS").waitFor();
  await page.getByRole("textbox", { name: "URL" }).fill(receiver.url);
  await click(page, "Create");
  const secret = await page.getByText(/^whsec_/).innerText();
  expect(await page.locator("button:focus").innerText()).toBe("Close");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "orders" }).click();
  await click(page, "Send test event");
  await row(page, "webhook.test").getByText("succeeded").waitFor();
  const [{ text, headers, body }] = receiver.received as [Receiver["received"][0]];
  expect(new Webhook(secret).verify(text, headers)).toEqual(body);
  const kept = [await page.content(), await page.evaluate("JSON.stringify(localStorage)"), page.url()];
  expect(kept.join().includes(secret)).toBe(false);

  receiver.answering = () => 503;
  await issue(suite.rest);
  await page.reload();
  await row(page, "key.issued").getByText("HTTP 503").waitFor();
  await page.getByRole("link", { name: "key.issued" }).click();
  const attempts = page.getByRole("table", { name: "Attempts" });
  await attempts.getByRole("cell", { name: "503", exact: true }).first().waitFor();
  receiver.answering = () => 204;
  await page.getByRole("dialog").getByRole("button", { name: "Redeliver" }).click();
  await attempts.getByRole("cell", { name: "delivered" }).waitFor();
  expect(await page.getByRole("dialog").getByText("succeeded").count()).toBe(1);
  // Nothing is pending now that would be read again.
  await page.getByRole("dialog").getByRole("button", { name: "Redeliver" }).click();
  await attempts.getByRole("cell", { name: "delivered" }).nth(1).waitFor();
  await page.goBack();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.goForward();
  await page.reload();
  await attempts.getByRole("cell", { name: "delivered" }).nth(1).waitFor();
});

test("the deliveries are read again only while one is pending, and filtered by the URL", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const { id } = await createEndpoint({}, () => promise);
  const page = await suite.visit({ token: suite.token("keyhold:webhooks") }, "/webhooks");
  await page.clock.install();
  await page.goto(`${suite.server.url}/console/webhooks/${id}?state=pending`);
  await page.getByText("Nothing matches.").waitFor();
  const requests = eventsOf(page, "request", "ListWebhookDeliveries");
  const finished = eventsOf(page, "requestfinished", "ListWebhookDeliveries");
  await page.clock.fastForward(120_000);
  await page.clock.pauseAt(Date.now() + 240_000);
  expect(requests).toHaveLength(0);
  /** Time passes only here, and the page shows nothing while it does not. */
  const run = (milliseconds: number, locator: Locator) =>
    expect.poll(async () => [await page.clock.runFor(milliseconds), await locator.count()]).toEqual([undefined, 1]);

  await click(page, "Send test event");
  await run(1, row(page, "webhook.test").getByText("pending"));
  const before = requests.length;
  for (let second = 1; second <= 10; second++) {
    await page.clock.runFor(1_000);
    // A request in flight would take the place of the next one.
    await expect.poll(() => finished.length).toBe(requests.length);
    expect(requests.length - before).toBeLessThanOrEqual(second / 2 + 1);
  }
  expect(requests.length - before).toBeGreaterThanOrEqual(4);
  resolve(204);
  await run(2_000, page.getByText("Nothing matches."));
  await click(page, "succeeded");
  await run(1, row(page, "webhook.test").getByText("succeeded"));
  expect(new URL(page.url()).searchParams.getAll("state")).toEqual(["pending", "succeeded"]);
  const settled = requests.length;
  await page.clock.runFor(120_000);
  expect(requests).toHaveLength(settled);
});

test("a person edits, disables, enables, rotates, replays and deletes an endpoint", async () => {
  const { id, secret, receiver } = await createEndpoint({ event_types: ["key.issued"] });
  const page = await suite.visit({ token: suite.token("keyhold:admin") }, `/webhooks/${id}`);
  const dialog = page.getByRole("dialog");
  await click(page, "Edit");
  await page.getByRole("checkbox", { name: "key.deleted" }).check();
  await page.getByRole("textbox", { name: "Filter" }).fill("actor_id=");
  suite.expectMessages(/status of 400/);
  await click(page, "Save");
  await dialog.getByRole("alert").waitFor();
  await page.getByRole("textbox", { name: "Filter" }).fill('actor_id="team_42"');
  await click(page, "Save");
  await page.getByText("key.issued, key.deleted").waitFor();

  await click(page, "Disable");
  await dialog.getByRole("button", { name: "Disable" }).click();
  await page.getByText("by a person or a program").waitFor();
  for (const name of ["Send test event", "Replay events"])
    expect(await page.getByRole("button", { name }).count()).toBe(0);
  await issue(suite.rest, { actor_id: "team_42" });
  await issue(suite.rest, { actor_id: "team_43" });
  await click(page, "Enable");
  await dialog.getByRole("button", { name: "Enable" }).click();
  await expect.poll(() => receiver.received.length).toBe(1);
  await click(page, "Refresh");
  await row(page, "key.issued").getByText("succeeded").waitFor();

  await click(page, "Rotate secret");
  await page.getByRole("textbox", { name: "Grace period" }).fill("1h");
  const closed = Promise.withResolvers<void>();
  await page.route("**/*RotateWebhookEndpointSecret", (route) => closed.promise.then(() => route.continue()));
  await click(page, "Rotate");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  closed.resolve();
  const next = await page.getByText(/^whsec_/).innerText();
  expect(next).not.toBe(secret);
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByText("Old secret signs until").waitFor();
  await click(page, "Send test event");
  await row(page, "webhook.test").getByText("succeeded").waitFor();
  const last = receiver.received.at(-1) as Receiver["received"][0];
  for (const one of [secret, next]) expect(new Webhook(one).verify(last.text, last.headers)).toEqual(last.body);

  await click(page, "Replay events");
  await page.getByRole("textbox", { name: "First event" }).fill("999999");
  await click(page, "Replay");
  await dialog.getByRole("alert").getByText("the audit log has the events").waitFor();
  await page.getByRole("textbox", { name: "First event" }).fill(String(receiver.received[0]?.body.data.seq));
  await click(page, "Replay");
  await dialog.waitFor({ state: "detached" });
  await expect
    .poll(() => receiver.received.map(({ body }) => body.type))
    .toEqual(["key.issued", "webhook.test", "key.issued"]);

  await click(page, "Delete");
  expect(await dialog.getByRole("button", { name: "Delete" }).isDisabled()).toBe(true);
  await page.getByRole("textbox", { name: `Type ${id} to confirm` }).fill(id);
  await page.keyboard.press("Enter");
  await page.waitForURL("**/console/webhooks");
  expect((await suite.rest("GET", `${paths.webhookEndpoints}/${id}`)).status).toBe(404);
});

test("without the scope there are no webhooks, and without the audit log no lag", async () => {
  const { id } = await createEndpoint();
  const reader = await suite.visit({ token: suite.token("keyhold:keys.read") }, `/webhooks/${id}`);
  await reader.getByText("Not permitted").waitFor();
  expect(await reader.getByRole("link", { name: "Webhooks" }).count()).toBe(0);
  const operator = await suite.visit({ token: suite.token("keyhold:webhooks") }, `/webhooks/${id}`);
  await operator.getByText("Next event").waitFor();
  expect(await operator.getByText("Lag").count()).toBe(0);
});

test("the pages and their dialogs are accessible, and fit narrow screens", async () => {
  const { id } = await createEndpoint({ description: "d".repeat(100) }, () => 500);
  await suite.rest("POST", `${paths.webhookEndpoints}/${id}:sendTestEvent`, {});
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await suite.visit({ token: suite.token("keyhold:admin"), colorScheme, width: 360 }, "/webhooks");
    const expectFine = async () => {
      await expectAccessible(page);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    };
    const link = page.getByRole("link", { name: id });
    await link.waitFor();
    await expectFine();
    await click(page, "New endpoint");
    await page.getByRole("dialog").waitFor();
    await expectFine();
    await page.keyboard.press("Escape");
    await link.click();
    await page.getByRole("link", { name: "webhook.test" }).waitFor();
    await expectFine();
    await click(page, "Delete");
    await page.getByRole("dialog").waitFor();
    await expectFine();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "webhook.test" }).click();
    await page.getByRole("table", { name: "Attempts" }).waitFor();
    await expectFine();
  }
});
