import { isDeepStrictEqual } from "node:util";
import { GRACE_PERIOD_BOUNDS, parseDuration } from "../domain/duration.ts";
import { fieldError, KeyholdError } from "../domain/errors.ts";
import { newId, UUID } from "../domain/key.ts";
import { callerName, type Principal } from "../domain/principal.ts";
import { type PagingContext, pageOf, parsePageRequest } from "../paging/page-request.ts";
import {
  type Delivery,
  type EndpointFields,
  type EndpointUpdate,
  MAX_ENDPOINTS,
  type WebhookEndpoint,
} from "./endpoint.ts";
import { TEST_EVENT } from "./event-types.ts";
import { payloadOf } from "./payload.ts";
import { newWebhookSecret, type SecretContext } from "./secret.ts";
import type { EndpointStore } from "./store.ts";

export interface WebhooksContext extends SecretContext, PagingContext {
  readonly store: EndpointStore;
  /** The issuer. */
  readonly source: string;
  /** Throws `INVALID_ARGUMENT` of the field if no request may ever go to this URL. */
  readonly checkUrl: (url: string, field: string) => void;
  /** The events that the audit log has. */
  readonly bounds: () => Promise<{ readonly first: number; readonly size: number }>;
  /** Called when a delivery may be due. */
  readonly onDue: () => void;
}

/** Creates an endpoint. Returns an existing one with the same fields, without its secret. */
export async function createEndpoint(
  context: WebhooksContext,
  principal: Principal,
  { endpointId, ...fields }: EndpointFields & { readonly endpointId: string },
): Promise<{ endpoint: WebhookEndpoint; secret: string | null }> {
  const { store, clock } = context;
  const { text, wrapped } = newWebhookSecret(context, endpointId);
  const created = { createTime: new Date(clock.now()), createdBy: callerName(principal) };
  const endpoint = await store.add({ endpointId, ...fields, ...created, secret: wrapped }, principal);
  if (endpoint !== null) return { endpoint, secret: text };
  const existing = await store.find(endpointId);
  if (existing === null) throw tooMany();
  const { url, eventTypes, filter, description } = existing;
  if (isDeepStrictEqual({ url, eventTypes, filter, description }, fields)) return { endpoint: existing, secret: null };
  const problem = "is already the id of an endpoint with other values; choose another id, or update that endpoint";
  throw fieldError("WEBHOOK_ENDPOINT_ALREADY_EXISTS", "endpoint_id", problem);
}

function tooMany(): KeyholdError {
  const message = `the maximum of ${MAX_ENDPOINTS} webhook endpoints is reached; delete one first`;
  return new KeyholdError("TOO_MANY_WEBHOOK_ENDPOINTS", message);
}

/** @throws `WEBHOOK_ENDPOINT_NOT_FOUND` */
export async function getEndpoint({ store }: WebhooksContext, id: string) {
  return found(await store.find(id));
}

/** Lists all endpoints by id. */
export async function listEndpoints({ store }: WebhooksContext) {
  return store.list();
}

/** @throws `WEBHOOK_ENDPOINT_NOT_FOUND` */
export async function updateEndpoint(
  { store, clock, onDue }: WebhooksContext,
  principal: Principal,
  { endpointId, update }: { readonly endpointId: string; readonly update: EndpointUpdate },
) {
  const endpoint = found(await store.update(endpointId, update, new Date(clock.now()), principal));
  onDue();
  return endpoint;
}

/** @throws `WEBHOOK_ENDPOINT_NOT_FOUND` */
export async function deleteEndpoint({ store }: WebhooksContext, principal: Principal, id: string): Promise<void> {
  if (!(await store.delete(id, principal))) throw notFound();
}

/** Parses the grace period of a rotation; without one, the old secret ceases to sign at once. Returns milliseconds. */
export function parseGrace(text: string | undefined): number {
  return text === undefined ? 0 : parseDuration(text, "grace_period", GRACE_PERIOD_BOUNDS);
}

/** Replaces the secret. @throws `WEBHOOK_ENDPOINT_NOT_FOUND` */
export async function rotateSecret(context: WebhooksContext, principal: Principal, endpointId: string, grace: number) {
  const { text, wrapped } = newWebhookSecret(context, endpointId);
  const time = new Date(context.clock.now());
  const times = { time, oldExpireTime: new Date(time.getTime() + grace) };
  return { endpoint: found(await context.store.rotate(endpointId, wrapped, times, principal)), secret: text };
}

/** Sends an event that is not in the audit log. @throws `WEBHOOK_ENDPOINT_NOT_FOUND` or `WEBHOOK_ENDPOINT_DISABLED` */
export async function sendTestEvent(context: WebhooksContext, endpointId: string) {
  const { store, clock, random, source, onDue } = context;
  const now = clock.now();
  const deliveryId = newId(now, random);
  const event = { seq: null, time: new Date(now), action: TEST_EVENT, resourceId: endpointId };
  const nothing = { keyId: null, actorId: null, before: null, after: null };
  const body = payloadOf({ ...event, ...nothing }, TEST_EVENT, deliveryId, source);
  const delivery = await store.addDelivery({ deliveryId, endpointId, seq: null, eventType: TEST_EVENT, body });
  if (delivery === null) throw disabled(await getEndpoint(context, endpointId));
  onDue();
  return delivery;
}

interface DeliveriesRequest {
  readonly endpointId: string;
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A place in a list: that of a delivery. */
interface DeliveryPosition {
  readonly deliveryId: string;
}

/** Throws `INVALID_ARGUMENT` with every invalid field. */
export function parseDeliveriesPage(context: PagingContext, { endpointId, ...request }: DeliveriesRequest) {
  const nothing = () => null;
  const unfiltered = { ...request, filter: "", orderBy: "" };
  const list = `webhookDeliveries/${endpointId}`;
  const page = parsePageRequest<null, null, DeliveryPosition>(context, list, unfiltered, nothing, nothing);
  return { endpointId, page };
}

/** Returns one page of deliveries, and the token of the next one. @throws `WEBHOOK_ENDPOINT_NOT_FOUND` */
export async function listDeliveries(
  context: WebhooksContext,
  { endpointId, page }: ReturnType<typeof parseDeliveriesPage>,
) {
  await getEndpoint(context, endpointId);
  const rows = await context.store.deliveries(endpointId, page.after?.deliveryId ?? null, page.size + 1);
  return pageOf(page, rows, sizeOf, ({ deliveryId }): DeliveryPosition => ({ deliveryId }), context.rings.pageToken);
}

/** Returns an upper bound of the bytes of a delivery in a response. */
function sizeOf(delivery: Delivery): number {
  return 512 + 2 * Buffer.byteLength(JSON.stringify(delivery));
}

/** Begins the attempts of a delivery anew. @throws `WEBHOOK_ENDPOINT_NOT_FOUND`, `WEBHOOK_DELIVERY_NOT_FOUND` or `WEBHOOK_ENDPOINT_DISABLED` */
export async function redeliver(
  context: WebhooksContext,
  { endpointId, deliveryId }: { readonly endpointId: string; readonly deliveryId: string },
) {
  const endpoint = await getEndpoint(context, endpointId);
  const { store, onDue } = context;
  if (endpoint.disableTime !== null) throw disabled(endpoint);
  if (UUID.test(deliveryId)) await store.redeliver(endpointId, deliveryId);
  const delivery = UUID.test(deliveryId) ? await store.findDelivery(endpointId, deliveryId) : null;
  if (delivery === null)
    throw new KeyholdError("WEBHOOK_DELIVERY_NOT_FOUND", "the webhook endpoint has no such delivery");
  onDue();
  return delivery;
}

/** Moves the position of an endpoint back. @throws `AUDIT_SEQ_OUT_OF_RANGE`, `WEBHOOK_ENDPOINT_NOT_FOUND` or `WEBHOOK_ENDPOINT_DISABLED` */
export async function replay(context: WebhooksContext, principal: Principal, endpointId: string, seq: number) {
  const { first, size } = await context.bounds();
  if (seq < first || seq >= size) {
    const description =
      size === first ? "the audit log is empty" : `the audit log has the events ${first} to ${size - 1}`;
    throw new KeyholdError("AUDIT_SEQ_OUT_OF_RANGE", `seq: ${description}`);
  }
  const endpoint = await context.store.replay(endpointId, seq, principal);
  if (endpoint === null) throw disabled(await getEndpoint(context, endpointId));
  context.onDue();
  return endpoint;
}

function found(endpoint: WebhookEndpoint | null): WebhookEndpoint {
  if (endpoint === null) throw notFound();
  return endpoint;
}

/** An id that does not exist may be a secret in the wrong place. */
function notFound(): KeyholdError {
  return new KeyholdError("WEBHOOK_ENDPOINT_NOT_FOUND", "no such webhook endpoint");
}

function disabled({ endpointId }: WebhookEndpoint): KeyholdError {
  return new KeyholdError(
    "WEBHOOK_ENDPOINT_DISABLED",
    `the webhook endpoint ${endpointId} is disabled; enable it first`,
  );
}
