import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type WebhookDeliverySchema,
  WebhookDeliveryState,
  WebhookEndpointSchema,
  type WebhookEndpointsService,
} from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { parseEventFilter } from "../../audit/filter.ts";
import { checkAll, invalidArgument } from "../../domain/errors.ts";
import { pageSizeOf } from "../../paging/page-request.ts";
import type { Attempt, Delivery, DeliveryState, EndpointUpdate, WebhookEndpoint } from "../../webhooks/endpoint.ts";
import {
  createEndpoint,
  deleteEndpoint,
  getEndpoint,
  listDeliveries,
  listEndpoints,
  parseDeliveriesPage,
  parseGrace,
  redeliver,
  replay,
  rotateSecret,
  sendTestEvent,
  updateEndpoint,
  type WebhooksContext,
} from "../../webhooks/endpoints.ts";
import { checkEventTypes } from "../../webhooks/event-types.ts";
import { costOfItems, type ServiceRows } from "../row.ts";
import { timestamp } from "./key-resources.ts";
import { maskedUpdate } from "./update-mask.ts";

const policy = "keyhold:webhooks";
/** Endpoints receive events of all actors: a caller that may manage the keys of some actors only must not read those of others. */
const unrestricted = "manage webhook endpoints";

export const webhookEndpoints: ServiceRows<typeof WebhookEndpointsService> = {
  createWebhookEndpoint: {
    implement:
      ({ webhooks }) =>
      ({ endpointId, url, eventTypes, filter, description }) => {
        const input = { endpointId, url, eventTypes, filter, description };
        checkFields(webhooks, input, "");
        return async (principal) => {
          const { endpoint, secret } = await createEndpoint(webhooks, principal, input);
          return { webhookEndpoint: webhookEndpoint(endpoint), secret: secret ?? "" };
        };
      },
    policy,
    unrestricted,
    idempotency: "idempotent",
  },
  getWebhookEndpoint: {
    implement:
      ({ webhooks }) =>
      ({ endpointId }) =>
      async () =>
        webhookEndpoint(await getEndpoint(webhooks, endpointId)),
    policy,
    unrestricted,
    idempotency: "no side effects",
  },
  listWebhookEndpoints: {
    implement:
      ({ webhooks }) =>
      () =>
      async () => ({ webhookEndpoints: (await listEndpoints(webhooks)).map(webhookEndpoint) }),
    policy,
    unrestricted,
    idempotency: "no side effects",
  },
  updateWebhookEndpoint: {
    implement:
      ({ webhooks }) =>
      ({ webhookEndpoint: resource, updateMask }) => {
        if (resource === undefined) throw invalidArgument("webhook_endpoint", "is required", "FIELD_REQUIRED");
        const { endpointId } = resource;
        const update = maskedUpdate<typeof WebhookEndpointSchema, EndpointUpdate>(
          updateMask,
          WebhookEndpointSchema,
          resource,
        );
        checkFields(webhooks, update, "webhook_endpoint.");
        return async (principal) => webhookEndpoint(await updateEndpoint(webhooks, principal, { endpointId, update }));
      },
    policy,
    unrestricted,
    idempotency: "idempotent",
  },
  deleteWebhookEndpoint: {
    implement:
      ({ webhooks }) =>
      ({ endpointId }) =>
      async (principal) => {
        await deleteEndpoint(webhooks, principal, endpointId);
        return {};
      },
    policy,
    unrestricted,
    idempotency: "idempotent",
  },
  rotateWebhookEndpointSecret: {
    implement:
      ({ webhooks }) =>
      ({ endpointId, gracePeriod }) => {
        const grace = parseGrace(gracePeriod);
        return async (principal) => {
          const { endpoint, secret } = await rotateSecret(webhooks, principal, endpointId, grace);
          return { webhookEndpoint: webhookEndpoint(endpoint), secret };
        };
      },
    policy,
    unrestricted,
    idempotency: "none",
  },
  sendTestWebhookEvent: {
    implement:
      ({ webhooks }) =>
      ({ endpointId }) =>
      async () =>
        webhookDelivery(await sendTestEvent(webhooks, endpointId)),
    policy,
    unrestricted,
    idempotency: "none",
  },
  listWebhookDeliveries: {
    implement:
      ({ webhooks }) =>
      (request) => {
        const page = parseDeliveriesPage(webhooks, request);
        return async () => {
          const { items, nextPageToken } = await listDeliveries(webhooks, page);
          return { webhookDeliveries: items.map(webhookDelivery), nextPageToken };
        };
      },
    policy,
    unrestricted,
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  redeliverWebhook: {
    implement:
      ({ webhooks }) =>
      ({ endpointId, deliveryId }) =>
      async () =>
        webhookDelivery(await redeliver(webhooks, { endpointId, deliveryId })),
    policy,
    unrestricted,
    idempotency: "idempotent",
  },
  replayWebhookEvents: {
    implement:
      ({ webhooks }) =>
      ({ endpointId, seq }) =>
      async (principal) =>
        webhookEndpoint(await replay(webhooks, principal, endpointId, Number(seq))),
    policy,
    unrestricted,
    idempotency: "idempotent",
  },
};

/** Throws `INVALID_ARGUMENT` with every invalid field of those that are present. */
function checkFields(
  { checkUrl, clock }: WebhooksContext,
  { url, eventTypes, filter }: EndpointUpdate,
  path: string,
): void {
  checkAll(
    () => url !== undefined && checkUrl(url, `${path}url`),
    () => eventTypes !== undefined && checkEventTypes(eventTypes, `${path}event_types`),
    () => filter !== undefined && parseEventFilter(filter, clock.now),
  );
}

function webhookEndpoint(endpoint: WebhookEndpoint): MessageInitShape<typeof WebhookEndpointSchema> {
  const { eventTypes, createTime, updateTime, disableTime, disableReason, nextSeq, ...fields } = endpoint;
  const { secretRotateTime, oldSecretExpireTime, ...texts } = fields;
  return {
    ...texts,
    eventTypes: [...eventTypes],
    disabled: disableTime !== null,
    disableReason: disableReason ?? "",
    disableTime: timestamp(disableTime),
    createTime: timestamp(createTime),
    updateTime: timestamp(updateTime),
    secretRotateTime: timestamp(secretRotateTime),
    oldSecretExpireTime: timestamp(oldSecretExpireTime),
    nextSeq: BigInt(nextSeq),
  };
}

const STATES: Readonly<Record<DeliveryState, WebhookDeliveryState>> = {
  pending: WebhookDeliveryState.PENDING,
  succeeded: WebhookDeliveryState.SUCCEEDED,
  failed: WebhookDeliveryState.FAILED,
};

function webhookDelivery(delivery: Delivery): MessageInitShape<typeof WebhookDeliverySchema> {
  const { deliveryId, endpointId, seq, eventType, state, createTime, nextAttemptTime, attempts } = delivery;
  return {
    ...{ deliveryId, endpointId, eventType, state: STATES[state] },
    ...(seq !== null && { seq: BigInt(seq) }),
    createTime: timestamp(createTime),
    nextAttemptTime: timestamp(nextAttemptTime),
    attempts: attempts.map(webhookAttempt),
  };
}

function webhookAttempt({ time, httpStatus, error, durationMs }: Attempt) {
  return {
    ...{ time: timestamp(time), httpStatus: httpStatus ?? 0, error: error ?? "" },
    duration: durationFromMs(durationMs),
  };
}
