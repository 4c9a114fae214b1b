import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "postgres";
import { Webhook } from "standardwebhooks";
import type { StoredEvent } from "../support/audit-replay.ts";
import { paths, restClient } from "../support/rest.ts";
import type { Seeded } from "../support/seeded.ts";
import { type Answering, type ReceivedWebhook, startReceiver } from "../support/webhook-receiver.ts";
import type { ClusterNode } from "./cluster.ts";

/** Of so many attempts, the receiver does not answer one, and rejects nine. */
const ATTEMPTS = 200;
const REJECTED = 9;

/** Milliseconds to wait for the deliveries; the lease of a node that was killed takes half of it. */
const TIMEOUT = 60_000;

/** What a receiver has accepted. */
export interface Accepted {
  readonly secret: string;
  /** The position of the first event of the endpoint. */
  readonly first: number;
  readonly messages: readonly ReceivedWebhook[];
}

/** A receiver of all events. */
export interface WebhookReceiver {
  /** Creates an endpoint for all events from now on. */
  subscribe(node: ClusterNode): Promise<void>;
  /** Waits for the deliveries of these events, whose attempts succeed from now on. Returns violations. */
  finish(events: readonly StoredEvent[], admin: Sql): Promise<string[]>;
  close(): Promise<void>;
}

export async function startWebhookReceiver(seeded: Seeded): Promise<WebhookReceiver> {
  const over = Promise.withResolvers<number>();
  const messages: ReceivedWebhook[] = [];
  const accept: Answering = (message) => {
    messages.push(message);
    return 204;
  };
  const receiver = await startReceiver((message) => {
    const choice = seeded.below(ATTEMPTS);
    if (choice === 0) return over.promise;
    return choice <= REJECTED ? 500 : accept(message);
  });
  let endpoint = { secret: "", first: 0 };
  return {
    subscribe: async (node) => {
      const fields = { endpoint_id: "faults", url: receiver.url, event_types: ["*"] };
      const { status, body } = await restClient(node)("POST", paths.webhookEndpoints, fields);
      if (status !== 200) throw new Error(`the webhook endpoint was not created: ${status}`);
      endpoint = { secret: body.secret, first: Number(body.webhook_endpoint.next_seq) };
    },
    finish: async (events, admin) => {
      receiver.answering = accept;
      over.resolve(500);
      const unfinished = await awaitDeliveries(admin, events.length);
      return [...unfinished, ...compareWebhooks(events, { ...endpoint, messages })];
    },
    close: receiver.close,
  };
}

/** Makes the attempts due at once, until all deliveries have succeeded, of a log of this size. */
async function awaitDeliveries(admin: Sql, size: number): Promise<string[]> {
  const deadline = performance.now() + TIMEOUT;
  for (;;) {
    await admin`UPDATE webhook_deliveries SET next_attempt_time = now() WHERE next_attempt_time > now()`;
    const [row] = await admin`
      SELECT next_seq::float8 AS next, (SELECT count(*)::int FROM webhook_deliveries WHERE state <> 'succeeded') AS unfinished
      FROM webhook_endpoints`;
    if (row?.next >= size && row?.unfinished === 0) return [];
    if (performance.now() > deadline)
      return [`the webhooks up to ${row?.next} of ${size} events were stored, ${row?.unfinished} did not succeed`];
    await sleep(200);
  }
}

/** Returns the events that were not accepted, and the messages that are wrong. */
export function compareWebhooks(events: readonly StoredEvent[], { secret, first, messages }: Accepted): string[] {
  const bySeq = Map.groupBy(messages, ({ body }) => body.data.seq);
  const webhook = new Webhook(secret);
  return [
    ...events
      .filter(({ seq }) => seq !== null && seq >= first && !bySeq.has(seq))
      .map(({ seq, action }) => `no webhook of event ${seq}, ${action}`),
    ...[...bySeq].flatMap(([seq, some]) => {
      const event = events[seq];
      const isWrong = ({ body }: ReceivedWebhook) =>
        body.type !== event?.action || body.data.key_id !== event?.keyId || body.id !== some[0]?.body.id;
      return some.some(isWrong) ? [`the webhooks of event ${seq}: ${some.map(({ text }) => text).join()}`] : [];
    }),
    ...messages.filter((message) => !isSigned(message, webhook)).map(({ text }) => `not signed: ${text}`),
  ];
}

/** `verify` compares the time too; the clocks of the nodes differ by hours. */
function isSigned({ headers, text }: ReceivedWebhook, webhook: Webhook): boolean {
  const { "webhook-id": id = "", "webhook-timestamp": time, "webhook-signature": signature } = headers;
  return signature === webhook.sign(id, new Date(Number(time) * 1000), text);
}
