import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import type { StoredEvent } from "../support/audit-replay.ts";
import { table } from "../support/conformance.ts";
import type { ReceivedWebhook } from "../support/webhook-receiver.ts";
import { compareWebhooks } from "./webhooks.ts";

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

const EVENTS = [0, 1, 2].map(
  (seq) => ({ seq, action: "key.revoked", keyId: `key ${seq}` }) as Partial<StoredEvent> as StoredEvent,
);

function messageOf(
  seq: number,
  { id = `message ${seq}`, keyId = `key ${seq}`, secret = SECRET } = {},
): ReceivedWebhook {
  const body = { id, type: "key.revoked", data: { seq, key_id: keyId } };
  const text = JSON.stringify(body);
  const signature = new Webhook(secret).sign(id, new Date(7_000), text);
  return { headers: { "webhook-id": id, "webhook-timestamp": "7", "webhook-signature": signature }, text, body };
}

const CASES = table<readonly [string, ReceivedWebhook[], RegExp[]]>([
  ["each event once, in any order", [messageOf(2), messageOf(1)], []],
  ["an event twice with the same id", [messageOf(1), messageOf(2), messageOf(1)], []],
  ["a lost event", [messageOf(1)], [/^no webhook of event 2, key\.revoked$/]],
  [
    "two messages of one event",
    [messageOf(1), messageOf(1, { id: "other" }), messageOf(2)],
    [/^the webhooks of event 1: /],
  ],
  ["another key", [messageOf(1), messageOf(2, { keyId: "key 1" })], [/^the webhooks of event 2: /]],
  ["an event that does not exist", [messageOf(1), messageOf(2), messageOf(3)], [/^the webhooks of event 3: /]],
  [
    "another secret",
    [messageOf(1), messageOf(2, { secret: `whsec_${Buffer.alloc(32, 2).toString("base64")}` })],
    [/^not signed: .*message 2/],
  ],
]);

test.each(CASES)("an endpoint from event 1 on, with %s", (_, messages, violations) => {
  const expected = violations.map((one) => expect.stringMatching(one));
  expect(compareWebhooks(EVENTS, { secret: SECRET, first: 1, messages })).toEqual(expected);
});
