import { readFileSync } from "node:fs";
import type { DescMethod } from "@bufbuild/protobuf";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { HmacKeysService } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyPagesService } from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { rowOf } from "../../src/api/v2alpha1/rpcs.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import type { HttpErrorReason } from "../../src/transport/wire/http-error.ts";

/** What a program looks at in an error. */
export type Reason = ErrorCode | HttpErrorReason;

const { method: issued } = IssuedApiKeysService;
const { method: imported } = ImportedApiKeysService;
const { method: hmacKeys } = HmacKeysService;
const { method: keys } = ApiKeysService;
const { method: audit } = AuditService;
const { method: usage } = UsageService;
const { method: actors } = ActorsService;
const { method: webhooks } = WebhookEndpointsService;

const OF_EVERY_CALL: readonly Reason[] = [
  "INVALID_ARGUMENT",
  "INTERNAL",
  "DATABASE_UNAVAILABLE",
  "OVERLOADED",
  "RATE_LIMITED",
];
const OF_GUARDED: readonly Reason[] = ["CALLER_UNAUTHENTICATED", "CALLER_NOT_PERMITTED", "AUTHORITY_UNAVAILABLE"];
const OF_BODIES: readonly Reason[] = ["BODY_TOO_LARGE", "MEDIA_TYPE_NOT_SUPPORTED", "CONTENT_ENCODING_NOT_SUPPORTED"];
const OF_UPDATES: readonly Reason[] = ["API_KEY_NOT_FOUND", "API_KEY_REVOKED", "API_KEY_EXPIRED", "CONCURRENT_CHANGE"];
const OF_IMPORTS: readonly Reason[] = [
  ...(["SERVERS_OUTDATED", "RAW_KEY_ALREADY_EXISTS", "REQUEST_ID_REUSED", "CHANGE_UNCONFIRMED"] as const),
  ...([
    "LOOKUP_PREFIX_ALREADY_EXISTS",
    "TOO_MANY_HASH_SCHEMES",
    "TOO_MANY_PREFIX_LENGTHS",
    "CONCURRENT_CHANGE",
  ] as const),
];
const OF_BULK_CHANGES: readonly Reason[] = [
  ...(["EXPECTED_COUNT_DIFFERS", "REQUEST_ID_REUSED", "CONCURRENT_CHANGE", "CHANGE_UNCONFIRMED"] as const),
];

/** The reasons that an RPC has beside those of all. */
const OF_RPCS: ReadonlyMap<DescMethod, readonly Reason[]> = new Map<DescMethod, readonly Reason[]>([
  [issued.createIssuedApiKey, ["SERVERS_OUTDATED", "REQUEST_ID_REUSED", "CHANGE_UNCONFIRMED"]],
  [issued.getIssuedApiKey, ["API_KEY_NOT_FOUND"]],
  [issued.listIssuedApiKeys, ["LIST_TOO_SLOW"]],
  [issued.updateIssuedApiKey, [...OF_UPDATES, "SERVERS_OUTDATED", "CHANGE_UNCONFIRMED"]],
  [issued.rotateIssuedApiKey, [...OF_UPDATES, "TOO_MANY_VALID_SECRETS", "CHANGE_UNCONFIRMED"]],
  [issued.endGracePeriod, [...OF_UPDATES, "CHANGE_UNCONFIRMED"]],
  [imported.createImportedApiKey, OF_IMPORTS],
  [imported.batchCreateImportedApiKeys, OF_IMPORTS],
  [imported.getImportedApiKey, ["API_KEY_NOT_FOUND"]],
  [imported.listImportedApiKeys, ["LIST_TOO_SLOW"]],
  [imported.updateImportedApiKey, [...OF_UPDATES, "SERVERS_OUTDATED", "CHANGE_UNCONFIRMED"]],
  [imported.deleteImportedApiKey, ["API_KEY_NOT_FOUND", "CHANGE_UNCONFIRMED"]],
  [hmacKeys.createHmacKey, ["HMAC_KEY_ALREADY_EXISTS", "TOO_MANY_HMAC_KEYS", "CHANGE_UNCONFIRMED"]],
  [hmacKeys.deleteHmacKey, ["HMAC_KEY_NOT_FOUND", "HMAC_KEY_IN_USE", "CHANGE_UNCONFIRMED"]],
  [keys.getApiKey, ["API_KEY_NOT_FOUND"]],
  [keys.listApiKeys, ["LIST_TOO_SLOW"]],
  [keys.deriveToken, ["CREDENTIAL_INVALID", "SCOPE_NOT_ALLOWED", "AUDIENCE_NOT_ALLOWED", "CLAIM_NOT_ALLOWED"]],
  [keys.revokeApiKey, ["API_KEY_NOT_FOUND", "API_KEY_ALREADY_REVOKED", "CHANGE_UNCONFIRMED"]],
  [keys.disableApiKey, [...OF_UPDATES, "SERVERS_OUTDATED", "CHANGE_UNCONFIRMED"]],
  [keys.enableApiKey, [...OF_UPDATES, "CHANGE_UNCONFIRMED"]],
  [keys.adjustQuota, [...OF_UPDATES, "QUOTA_NOT_FOUND", "CHANGE_UNCONFIRMED"]],
  [keys.bulkRevokeApiKeys, OF_BULK_CHANGES],
  [keys.bulkDisableApiKeys, [...OF_BULK_CHANGES, "SERVERS_OUTDATED"]],
  [audit.listAuditEvents, ["LIST_TOO_SLOW"]],
  [audit.getAuditEvent, ["AUDIT_EVENT_NOT_FOUND"]],
  [audit.getAuditProof, ["AUDIT_EVENT_NOT_FOUND", "AUDIT_SEQ_OUT_OF_RANGE"]],
  [audit.watchAuditEvents, ["AUDIT_SEQ_OUT_OF_RANGE", "WATCH_TOO_SLOW"]],
  [usage.queryUsage, ["LIST_TOO_SLOW"]],
  [usage.getKeyUsage, ["API_KEY_NOT_FOUND", "LIST_TOO_SLOW"]],
  [actors.getActor, ["ACTOR_NOT_FOUND"]],
  [actors.listActors, ["LIST_TOO_SLOW"]],
  [actors.updateActor, ["SERVERS_OUTDATED", "CHANGE_UNCONFIRMED"]],
  [actors.adjustActorQuota, ["QUOTA_NOT_FOUND", "CHANGE_UNCONFIRMED"]],
  [actors.deleteActor, ["ACTOR_NOT_FOUND", "CHANGE_UNCONFIRMED"]],
  [webhooks.createWebhookEndpoint, ["WEBHOOK_ENDPOINT_ALREADY_EXISTS", "TOO_MANY_WEBHOOK_ENDPOINTS"]],
  [webhooks.getWebhookEndpoint, ["WEBHOOK_ENDPOINT_NOT_FOUND"]],
  [webhooks.updateWebhookEndpoint, ["WEBHOOK_ENDPOINT_NOT_FOUND"]],
  [webhooks.deleteWebhookEndpoint, ["WEBHOOK_ENDPOINT_NOT_FOUND"]],
  [webhooks.rotateWebhookEndpointSecret, ["WEBHOOK_ENDPOINT_NOT_FOUND"]],
  [webhooks.sendTestWebhookEvent, ["WEBHOOK_ENDPOINT_NOT_FOUND", "WEBHOOK_ENDPOINT_DISABLED"]],
  [webhooks.listWebhookDeliveries, ["WEBHOOK_ENDPOINT_NOT_FOUND"]],
  [
    webhooks.redeliverWebhook,
    ["WEBHOOK_ENDPOINT_NOT_FOUND", "WEBHOOK_DELIVERY_NOT_FOUND", "WEBHOOK_ENDPOINT_DISABLED"],
  ],
  [webhooks.replayWebhookEvents, ["WEBHOOK_ENDPOINT_NOT_FOUND", "WEBHOOK_ENDPOINT_DISABLED", "AUDIT_SEQ_OUT_OF_RANGE"]],
  [KeyPagesService.method.createKeyPageSession, ["KEY_PAGES_UNAVAILABLE"]],
  [SelfServiceService.method.selfRevokeApiKey, ["CREDENTIAL_INVALID", "API_KEY_ALREADY_REVOKED", "CHANGE_UNCONFIRMED"]],
]);

/** Every reason that an RPC may be refused for, but for those of HTTP itself. */
export function reasonsOf(method: DescMethod, hasBody: boolean): readonly Reason[] {
  return [
    ...OF_EVERY_CALL,
    ...(rowOf(method)?.policy === "public" ? [] : OF_GUARDED),
    ...(hasBody ? OF_BODIES : []),
    ...(OF_RPCS.get(method) ?? []),
  ];
}

/** The row of a reason in docs/api.md, which a test compares with the code. */
export interface ReasonRow {
  readonly reason: string;
  /** Its name in google.rpc.Code. */
  readonly status: string;
  readonly http: string;
  /** Its links are relative to /openapi.json and /docs. */
  readonly when: string;
}

export function readReasonRows(): ReadonlyMap<string, ReasonRow> {
  const text = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| ([A-Z_]+) \| (\d{3}) \| (.*) \|$/gm)];
  return new Map(
    rows.map(([, reason = "", status = "", http = "", when = ""]) => [
      reason,
      { reason, status, http, when: when.replaceAll("](", "](docs/") },
    ]),
  );
}
