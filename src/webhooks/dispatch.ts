import { isAdminScope } from "../domain/admin-scopes.ts";
import { newId } from "../domain/key.ts";
import type { Clock } from "../lib/clock.ts";
import type { Random } from "../lib/random.ts";
import type { NewDelivery } from "./endpoint.ts";
import { ADMIN_TOKEN_CREATED, ANY_EVENT } from "./event-types.ts";
import { payloadOf, type WebhookEvent } from "./payload.ts";
import type { DispatchStore, EndpointBehind } from "./store.ts";

export interface DispatchContext<E extends WebhookEvent> {
  readonly store: DispatchStore;
  /** Returns the events of the audit log from `seq` on, in their order. */
  readonly read: (seq: number, limit: number) => Promise<readonly E[]>;
  /** Returns a function that says whether an event matches a filter. */
  readonly compile: (filter: string) => (event: E) => boolean;
  /** The issuer. */
  readonly source: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Events read at once: with 100 endpoints, 10,000 deliveries of some 400 bytes. */
const BATCH = 100;

/**
 * Adds the deliveries of all events that were recorded since, exactly one for each event and endpoint. Several nodes may do this at once: one of
 * them moves the position of an endpoint.
 */
export async function dispatch<E extends WebhookEvent>(context: DispatchContext<E>): Promise<void> {
  for (;;) {
    let moved = 0;
    for (const endpoints of groupsOf(await context.store.behind())) moved += await dispatchBatch(context, endpoints);
    if (moved === 0) return;
  }
}

/** Endpoints at the same position, usually all of them, share a batch. */
function groupsOf(endpoints: readonly EndpointBehind[]): Iterable<readonly [EndpointBehind, ...EndpointBehind[]]> {
  return Map.groupBy(endpoints, ({ nextSeq }) => nextSeq).values() as Iterable<[EndpointBehind, ...EndpointBehind[]]>;
}

async function dispatchBatch<E extends WebhookEvent>(
  context: DispatchContext<E>,
  endpoints: readonly [EndpointBehind, ...EndpointBehind[]],
): Promise<number> {
  const [{ nextSeq, size }] = endpoints;
  const events = await context.read(nextSeq, BATCH);
  const range = { from: nextSeq, next: (events.at(-1)?.seq ?? size - 1) + 1, count: events.length };
  const deliveries = endpoints.flatMap((endpoint) => deliveriesOf(context, endpoint, events));
  const ids = endpoints.map(({ endpointId }) => endpointId);
  return context.store.dispatch(range, ids, deliveries);
}

function deliveriesOf<E extends WebhookEvent>(
  { compile, clock, random, source }: DispatchContext<E>,
  { endpointId, eventTypes, filter }: EndpointBehind,
  events: readonly E[],
): NewDelivery[] {
  const matches = compile(filter);
  const isAny = eventTypes.includes(ANY_EVENT);
  return events.flatMap((event) => {
    const eventType = typesOf(event).find((type) => isAny || eventTypes.includes(type));
    if (eventType === undefined || !matches(event)) return [];
    const deliveryId = newId(clock.now(), random);
    return { deliveryId, endpointId, seq: event.seq, eventType, body: payloadOf(event, eventType, deliveryId, source) };
  });
}

/** Returns the types by which an endpoint can select an event. */
function typesOf({ action, before, after }: WebhookEvent): string[] {
  return hasAdminScope(after) && !hasAdminScope(before) ? [action, ADMIN_TOKEN_CREATED] : [action];
}

function hasAdminScope(fields: WebhookEvent["after"]): boolean {
  const scopes = fields?.scopes;
  return Array.isArray(scopes) && scopes.some(isAdminScope);
}
