import type { JsonObject } from "@bufbuild/protobuf";
import type { Examples } from "./example.ts";
import { CREATED, errorBody, invalidArgument, SAMPLES } from "./samples.ts";

const { issuedKeyId, creatorKeyId, issuedEventSeq, unknownEventSeq } = SAMPLES;

const added = (fields: JsonObject) => Object.entries(fields).map(([field, after]) => ({ field, after }));

/** The event of the creation of the issued key. */
const issuedEvent: JsonObject = {
  ...{ seq: issuedEventSeq, time: CREATED, action: "key.issued", key_id: issuedKeyId, actor_id: "team_42" },
  caller: {
    ...{ name: `admin-token:${creatorKeyId}`, method: "admin-token" },
    ...{ subject: creatorKeyId, key_id: creatorKeyId, issuer: "" },
  },
  ...{ resource_id: "", rpc: "keyhold.v2alpha1.IssuedApiKeysService/CreateIssuedApiKey" },
  ...{ peer_ip: "10.0.0.7", client_ip: "203.0.113.9", user_agent: "curl/8.14.1" },
  ...{ call_id: "6d1649f9-8c34-4fdf-8e5a-8d0a4974981f", request_id: "", node: "keyhold-0:1", reason: "" },
  changes: added({
    hint: "kh_v1_…0000",
    kind: "issued",
    name: "deploy bot",
    key_id: issuedKeyId,
    scopes: ["deploy", "read"],
  }),
};

const UNKNOWN_FIELD = invalidArgument(
  "filter",
  "unknown field at position 1 (an event has seq, time, action, key_id, actor_id, resource_id, caller, rpc, peer_ip, client_ip, call_id, request_id, node; did you mean actor_id?)",
  "INVALID_FORMAT",
);

const watched: JsonObject = { audit_event: issuedEvent, resume_token: "12011991" };

export const auditExamples: Readonly<Record<string, Examples>> = {
  AuditService_ListAuditEvents: {
    key: {
      summary: "The events of a key",
      parameters: { page_size: 50, filter: `key_id="${issuedKeyId}"` },
      status: 200,
      response: { audit_events: [issuedEvent], next_page_token: "" },
    },
    misspelt: {
      summary: "A filter with an unknown field",
      parameters: { filter: 'actor="team_42"' },
      status: 400,
      response: UNKNOWN_FIELD,
    },
  },
  AuditService_WatchAuditEvents: {
    watch: {
      summary: "An event and a heartbeat",
      parameters: { filter: 'action="key.*"' },
      status: 200,
      response: `id: 12011991\ndata: ${JSON.stringify(watched)}\n\nid: 12012001\n: heartbeat\n\n`,
    },
    misspelt: {
      summary: "A filter with an unknown field",
      parameters: { filter: 'actor="team_42"' },
      status: 400,
      response: UNKNOWN_FIELD,
    },
  },
  AuditService_GetAuditEvent: {
    get: { summary: "An event", parameters: { seq: issuedEventSeq }, status: 200, response: issuedEvent },
    unknown: {
      summary: "The event does not exist",
      parameters: { seq: unknownEventSeq },
      status: 404,
      response: errorBody(404, "NOT_FOUND", "AUDIT_EVENT_NOT_FOUND", `the audit log has no event ${unknownEventSeq}`),
    },
  },
};
