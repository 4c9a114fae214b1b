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
  salt: "7b1f0a52-3c1e-4d55-9a57-0f3f0c6f6a10",
  changes: added({
    hint: "kh_v1_…0000",
    kind: "issued",
    name: "deploy bot",
    key_id: issuedKeyId,
    scopes: ["deploy", "read"],
  }),
};

const CHECKPOINT: JsonObject = {
  checkpoint:
    "keyhold/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— keyhold/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10 Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n",
  verifier_key: "keyhold/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10+033de0ae+AXpV6Wm0eRUmXPcHYAdPzZTrM0kz0qBbgUMVzvwQgf8b",
};

const ENTRY = `{"action":"key.issued","digest":"${"5d".repeat(32)}","key_id":"${issuedKeyId}","seq":1,"time":"${CREATED}"}`;

const HASHES = ["CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=", "MXoBJ2Z4vFDY4n4rJcIDHWFUm7DwjJ1Y7dJ9zKxTjuA="];

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
  AuditService_GetAuditCheckpoint: {
    current: { summary: "The signed head of the tree", parameters: {}, status: 200, response: CHECKPOINT },
  },
  AuditService_GetAuditProof: {
    inclusion: {
      summary: "The proof that a tree has an event",
      parameters: { seq: "1", tree_size: "3" },
      status: 200,
      response: { tree_size: "3", entry: ENTRY, hashes: HASHES },
    },
    consistency: {
      summary: "The proof that a tree begins with an earlier one",
      parameters: { first_size: "2", tree_size: "3" },
      status: 200,
      response: { tree_size: "3", entry: "", hashes: HASHES.slice(1) },
    },
    neither: {
      summary: "Neither an event nor a size",
      parameters: { tree_size: "3" },
      status: 400,
      response: invalidArgument("seq", "either seq or first_size is required", "FIELD_REQUIRED"),
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
