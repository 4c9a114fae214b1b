import { mkdtemp, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { revoke, table, UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";
import { type Receiver, startReceiver } from "../support/webhook-receiver.ts";
import { useKeysCommand } from "./keys/keys-command.ts";

/** `keyhold webhooks` against a real server, and a receiver over HTTP. The tests run in order. */

const command = useKeysCommand({ KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" });
const { keyhold, rest } = command;

const SECRET = /^whsec_[\w+/]{43}=\n$/;

const webhooks = (...args: string[]) => keyhold(["webhooks", ...args]);

async function answerOf(...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await webhooks(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

let receiver: Receiver;
let secret: string;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

/** Returns the last request when there are this many. */
async function received(count: number): Promise<Receiver["received"][0]> {
  await vi.waitFor(() => expect(receiver.received).toHaveLength(count), { timeout: 10_000 });
  return receiver.received.at(-1) as Receiver["received"][0];
}

test("create prints the secret alone on stdout and the endpoint on stderr, and cannot show it again", async () => {
  const fields = ["--filter", 'actor_id="team_1"', "--description", "to the ledger"];
  const args = ["create", "billing", "--endpoint-url", receiver.url, "--event", "key.revoked", ...fields];
  const { code, stdout, stderr } = await webhooks(...args);
  expect([code, stdout]).toEqual([0, expect.stringMatching(SECRET)]);
  secret = stdout.trim();
  for (const line of [/^endpoint_id +billing$/m, /^event_types +key\.revoked$/m, /^description +to the ledger$/m])
    expect(stderr).toMatch(line);
  expect(stderr).not.toContain(secret);
  const repeated = await webhooks(...args);
  expect(repeated).toMatchObject({ code: 5, stdout: "", stderr: expect.stringContaining("rotate it") });
});

test("create --out writes the secret to a file that only its owner can read", async () => {
  const out = join(await mkdtemp(join(inject("testDir"), "webhooks-")), "webhook.secret");
  const { stdout } = await webhooks("create", "all", "--endpoint-url", "https://hooks.invalid", "--out", out, "--json");
  expect(await readFile(out, "utf8")).toMatch(SECRET);
  expect((await stat(out)).mode & 0o777).toBe(0o600);
  expect(stdout).not.toContain("whsec_");
  expect(JSON.parse(stdout).webhook_endpoint).toMatchObject({ endpoint_id: "all", event_types: ["*"] });
  expect((await webhooks("delete", "all")).stdout).toMatch(/^endpoint_id +all\nstatus +deleted$/m);
});

test("list, get and update show the endpoint as REST does", async () => {
  const path = `${paths.webhookEndpoints}/billing`;
  const endpoint = async () => (await rest()("GET", path)).body;
  const { stdout } = await webhooks("list");
  const [titles, row, ...others] = stdout.trimEnd().split("\n");
  expect(titles).toMatch(/^ENDPOINT ID +URL +EVENTS +DISABLED +NEXT SEQ +CREATED$/);
  expect([row?.split(/ {2,}/).slice(0, 4), others]).toEqual([["billing", receiver.url, "key.revoked", "-"], []]);
  expect((await answerOf("list")).map(({ endpoint_id }: Json) => endpoint_id)).toEqual(["billing"]);
  const events = ["--event", "key.revoked", "--event", "key.rotated"];
  const updated = await answerOf("update", "billing", ...events, "--description", "");
  expect(updated).toMatchObject({ event_types: ["key.revoked", "key.rotated"], description: "", url: receiver.url });
  const { next_seq: _, ...shown } = await answerOf("get", "billing");
  expect(await endpoint()).toMatchObject(shown);
  expect((await webhooks("get", "billing", "--output", "filter")).stdout).toBe('actor_id="team_1"\n');
});

test("nothing is sent to an endpoint that is disabled, until it is enabled", async () => {
  expect(await answerOf("update", "billing", "--disable")).toMatchObject({ disabled: true, disable_reason: "caller" });
  const disabled = await webhooks("test", "billing");
  expect(disabled).toMatchObject({ code: 5, stderr: expect.stringContaining("billing is disabled; enable it first") });
  expect(await answerOf("update", "billing", "--enable")).toMatchObject({ disabled: false });
});

test("a test event is received, listed with its attempts, and delivered again", async () => {
  const { delivery_id } = await answerOf("test", "billing");
  const { text, headers, body } = await received(1);
  expect(new Webhook(secret).verify(text, headers)).toMatchObject({ id: delivery_id, type: "webhook.test" });
  await vi.waitFor(
    async () => {
      const { stdout } = await webhooks("deliveries", "billing");
      const [titles, row] = stdout.trimEnd().split("\n");
      expect(titles).toMatch(/^DELIVERY ID +SEQ +EVENT +STATE +CREATED +NEXT ATTEMPT +HTTP +ERROR$/);
      const cells = row?.split(/ {2,}/) ?? [];
      expect([cells.slice(0, 4), cells.slice(5)]).toEqual([
        [delivery_id, "-", "webhook.test", "SUCCEEDED"],
        ["-", "204", "-"],
      ]);
    },
    { timeout: 10_000 },
  );
  expect(await answerOf("redeliver", "billing", delivery_id)).toMatchObject({ delivery_id });
  expect((await received(2)).body).toEqual(body);
});

test("replay delivers the events from a position on again", async () => {
  const { keyId } = await issue(rest(), { actor_id: "team_1" });
  await revoke(rest(), keyId);
  const { body } = await received(3);
  expect(body).toMatchObject({ type: "key.revoked", subject: keyId });
  const seq = String(body.data.seq);
  const succeeded = { seq, state: "WEBHOOK_DELIVERY_STATE_SUCCEEDED" };
  const newest = () => answerOf("deliveries", "billing", "--limit", "1");
  await vi.waitFor(async () => expect(await newest()).toMatchObject([succeeded]), { timeout: 10_000 });
  expect(await answerOf("replay", "billing", "--from-seq", seq)).toMatchObject({ endpoint_id: "billing" });
  expect((await received(4)).body).toEqual(body);
  const all = await answerOf("deliveries", "billing", "--page-size", "1");
  expect(all.map(({ event_type }: Json) => event_type)).toEqual(["key.revoked", "webhook.test"]);
});

test("rotate-secret prints a new secret, and both sign during the grace period", async () => {
  const { code, stdout, stderr } = await webhooks("rotate-secret", "billing", "--grace-period", "1h");
  expect([code, stdout]).toEqual([0, expect.stringMatching(SECRET)]);
  expect(stderr).toMatch(/^old_secret_expire_time +\S+$/m);
  await answerOf("test", "billing");
  const { text, headers } = await received(5);
  for (const one of [secret, stdout.trim()])
    expect(new Webhook(one).verify(text, headers)).toMatchObject({ type: "webhook.test" });
});

const FAILURES: readonly (readonly [string, number, string, readonly string[]])[] = [
  ["an unknown endpoint", 3, "no such webhook endpoint", ["get", "nothing"]],
  ["an unknown delivery", 3, "has no such delivery", ["redeliver", "billing", UNKNOWN_KEY_ID]],
  ["an unknown event", 2, "Allowed choices are", ["update", "billing", "--event", "key.revoke"]],
  ["a private address", 2, "url: ", ["create", "b", "--endpoint-url", "https://10.0.0.1"]],
  ["an invalid filter", 2, "filter: ", ["update", "billing", "--filter", "nothing = 1"]],
  ["an update without a field", 2, "nothing to update", ["update", "billing"]],
  ["--disable with --enable", 2, "cannot be used with", ["update", "billing", "--disable", "--enable"]],
  ["a position beyond the log", 2, "the audit log has the events", ["replay", "billing", "--from-seq", "999999999"]],
  ["an invalid position", 2, "Must be a whole number.", ["replay", "billing", "--from-seq", "-1"]],
  ["an invalid grace period", 2, "grace_period: ", ["rotate-secret", "billing", "--grace-period", "1"]],
];

test.each(table(FAILURES))("%s has exit status %i", async (_, code, message, args) => {
  expect(await webhooks(...args)).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
});

test("the commands are for callers with the scope keyhold:webhooks", async () => {
  const list = async (scope: string) => {
    const { stdout } = await command.adminToken("create", "--name", scope, "--scope", scope, "--json");
    return keyhold(["webhooks", "list", "--json"], undefined, { KEYHOLD_TOKEN: JSON.parse(stdout).secret });
  };
  const reader = await list("keyhold:audit");
  expect(reader).toMatchObject({ code: 4, stdout: "", stderr: expect.stringContaining("keyhold:webhooks") });
  expect(await list("keyhold:webhooks")).toMatchObject({ code: 0, stderr: "" });
});

test("delete removes the endpoint with its deliveries", async () => {
  expect(await answerOf("delete", "billing")).toEqual({});
  expect(await webhooks("list")).toMatchObject({ code: 0, stdout: "", stderr: "no webhook endpoints\n" });
  const [row] = await command.suite.sql`SELECT count(*)::int AS count FROM webhook_deliveries`;
  expect(row?.count).toBe(0);
});
