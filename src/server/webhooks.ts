import type { FastifyBaseLogger } from "fastify";
import type { AuditEvent } from "../audit/event.ts";
import { matches, parseEventFilter } from "../audit/filter.ts";
import { Deliverer } from "../webhooks/deliver.ts";
import { dispatch } from "../webhooks/dispatch.ts";
import type { WebhooksContext } from "../webhooks/endpoints.ts";
import { checkWebhookUrl } from "../webhooks/sending/address-policy.ts";
import { webhookSender } from "../webhooks/sending/sender.ts";
import type { Config } from "./config/config.ts";
import type { Jobs } from "./jobs.ts";
import type { Instruments } from "./metrics.ts";
import type { Resources } from "./resources.ts";

/** Returns what the API needs. `onDue` is called when a delivery may be due. */
export function webhooksContext(
  { issuer: source, webhooks: policy }: Config,
  { webhooks: { endpoints: store }, audit: { clock, store: events }, rings, keys: { random } }: Resources,
  onDue: () => void,
): WebhooksContext {
  return {
    ...{ store, ring: rings.webhookSecretWrap, rings, clock, random, source, onDue },
    checkUrl: (url, field) => checkWebhookUrl(url, policy, field),
    bounds: events.bounds,
  };
}

/** Starts the jobs that dispatch events of the audit log and send them. `run` runs the first one now; `stop` waits for the attempts in flight. */
export function startWebhooks(
  jobs: Jobs,
  { issuer: source, webhooks: policy }: Config,
  { webhooks: { queue }, audit: { clock, store: events }, rings, keys: { random } }: Resources,
  { webhooks: meter }: Instruments,
  log: FastifyBaseLogger,
) {
  const deliverer = new Deliverer({
    store: queue,
    sender: webhookSender(policy),
    ring: rings.webhookSecretWrap,
    onEnd: (outcome) => {
      meter.attempts[outcome]++;
      run();
    },
    onDisabled: (endpointId, reason) =>
      log.warn({ endpoint_id: endpointId, reason }, "a webhook endpoint was disabled: its receiver does not work"),
    onError: (err) => log.warn({ err }, "the result of a webhook attempt could not be recorded; it will be repeated"),
  });
  const compile = (filter: string) => {
    const parsed = parseEventFilter(filter, clock.now);
    return (event: AuditEvent) => matches(parsed, event);
  };
  const outbox = { store: queue, read: events.read, compile, source, clock, random };
  const run = jobs.start({
    name: "webhooks",
    interval: 1_000,
    failureMessage: "webhooks could not be sent yet",
    run: async () => {
      await dispatch(outbox);
      await deliverer.run();
    },
  });
  jobs.start({
    name: "webhook_deliveries",
    interval: 15_000,
    failureMessage: "old deliveries of webhooks could not be deleted",
    run: async () => {
      await queue.deleteOld();
      meter.queue = await queue.stats();
    },
  });
  return { run, stop: () => deliverer.stop() };
}
