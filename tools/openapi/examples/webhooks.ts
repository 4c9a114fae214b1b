import type { JsonObject } from "@bufbuild/protobuf";
import type { Example, Examples } from "./example.ts";
import { CREATED, errorBody, SAMPLES, WEBHOOK_ENDPOINT } from "./samples.ts";

const { webhookEndpointId, newWebhookEndpointId, unknownWebhookEndpointId, webhookDeliveryId } = SAMPLES;

const endpoint: JsonObject = {
  ...{ ...WEBHOOK_ENDPOINT, disabled: false, disable_reason: "" },
  ...{ create_time: CREATED, created_by: "none:anonymous", update_time: CREATED, next_seq: "12011991" },
};

const delivery: JsonObject = {
  ...{ delivery_id: webhookDeliveryId, endpoint_id: webhookEndpointId, event_type: "webhook.test" },
  ...{ state: "WEBHOOK_DELIVERY_STATE_PENDING", create_time: CREATED, next_attempt_time: CREATED, attempts: [] },
};

const failed: JsonObject = {
  ...delivery,
  attempts: [{ time: CREATED, http_status: 0, error: "request failed: ECONNREFUSED", duration: "0.004s" }],
};

/** Not the secret of any endpoint. */
const secret = `whsec_${"ExampleOfAWebhookSecret".padEnd(43, "0")}=`;

const parameters = { endpoint_id: webhookEndpointId };
const unknown: Example = {
  summary: "The endpoint does not exist",
  parameters: { endpoint_id: unknownWebhookEndpointId },
  status: 404,
  response: errorBody(404, "NOT_FOUND", "WEBHOOK_ENDPOINT_NOT_FOUND", "no such webhook endpoint"),
};

export const webhookExamples: Readonly<Record<string, Examples>> = {
  WebhookEndpointsService_CreateWebhookEndpoint: {
    create: {
      summary: "An endpoint for new signing keys",
      body: { ...WEBHOOK_ENDPOINT, endpoint_id: newWebhookEndpointId },
      status: 200,
      response: { secret, webhook_endpoint: { ...endpoint, endpoint_id: newWebhookEndpointId } },
    },
    other: {
      summary: "The id of another endpoint",
      body: { ...WEBHOOK_ENDPOINT, event_types: ["key.revoked"] },
      status: 409,
      response: errorBody(
        409,
        "ALREADY_EXISTS",
        "WEBHOOK_ENDPOINT_ALREADY_EXISTS",
        "endpoint_id: is already the id of an endpoint with other values; choose another id, or update that endpoint",
        { field: "endpoint_id" },
      ),
    },
  },
  WebhookEndpointsService_GetWebhookEndpoint: {
    get: { summary: "An endpoint", parameters, status: 200, response: endpoint },
    unknown,
  },
  WebhookEndpointsService_ListWebhookEndpoints: {
    list: { summary: "All endpoints", status: 200, response: { webhook_endpoints: [endpoint] } },
  },
  WebhookEndpointsService_UpdateWebhookEndpoint: {
    filter: {
      summary: "The events of one actor",
      parameters,
      body: { filter: 'actor_id="team_42"' },
      status: 200,
      response: { ...endpoint, filter: 'actor_id="team_42"' },
    },
    unknown: { ...unknown, body: { filter: "" } },
  },
  WebhookEndpointsService_DeleteWebhookEndpoint: {
    delete: { summary: "An endpoint", parameters, status: 200, response: {} },
    unknown,
  },
  WebhookEndpointsService_RotateWebhookEndpointSecret: {
    rotate: {
      summary: "The old secret signs for a day",
      parameters,
      body: { grace_period: "24h" },
      status: 200,
      response: {
        secret,
        webhook_endpoint: { ...endpoint, secret_rotate_time: CREATED, old_secret_expire_time: CREATED },
      },
    },
    unknown: { ...unknown, body: {} },
  },
  WebhookEndpointsService_SendTestWebhookEvent: {
    test: { summary: "A test event", parameters, body: {}, status: 200, response: delivery },
    unknown: { ...unknown, body: {} },
  },
  WebhookEndpointsService_ListWebhookDeliveries: {
    list: {
      summary: "A delivery whose first attempt has failed",
      parameters: { ...parameters, page_size: 50 },
      status: 200,
      response: { webhook_deliveries: [failed], next_page_token: "" },
    },
    unknown,
  },
  WebhookEndpointsService_RedeliverWebhook: {
    redeliver: {
      summary: "An attempt at once",
      parameters: { ...parameters, delivery_id: webhookDeliveryId },
      body: {},
      status: 200,
      response: failed,
    },
    unknown: {
      ...unknown,
      body: {},
      parameters: { endpoint_id: unknownWebhookEndpointId, delivery_id: webhookDeliveryId },
    },
  },
  WebhookEndpointsService_ReplayWebhookEvents: {
    replay: {
      summary: "All events",
      parameters,
      body: { seq: "0" },
      status: 200,
      response: { ...endpoint, next_seq: "0" },
    },
    unknown: { ...unknown, body: { seq: "0" } },
  },
};
