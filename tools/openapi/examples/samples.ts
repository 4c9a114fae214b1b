import type { JsonObject } from "@bufbuild/protobuf";
import type { InvalidReason } from "../../../src/domain/errors.ts";
import type { Example } from "./example.ts";

/**
 * What examples say of keys. The tests put what really exists in their places, so each stands for one thing, whatever example it
 * is in.
 */
export const SAMPLES = {
  issuedKeyId: "01991f3a-5b1c-7d21-9c44-0a1b2c3d4e5f",
  importedKeyId: "01991f3b-0d2e-7a90-8f13-5e6d7c8b9a01",
  /** Id of an issued key that is revoked. */
  revokedKeyId: "01991f3c-44aa-7b1e-b0d7-1122334455aa",
  /** Id of an issued key that has a quota. */
  quotaKeyId: "01991f3e-19d4-7f08-b6a3-6c5d4e3f2a1b",
  unknownKeyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
  /** Of the issued key. Its checksum is wrong, so that no scanner takes it for a real one. */
  secret: `kh_v1_${"ExampleOfASecret".padEnd(94, "0")}`,
  revokedSecret: `kh_v1_${"ExampleOfARevokedSecret".padEnd(94, "0")}`,
  /** Of the imported key. */
  rawKey: "legacy-0123456789-abcdefghij",
  /** Of no key yet. */
  newRawKey: "legacy-9876543210-jihgfedcba",
  /** Id of a key issued by the example. */
  usedRequestId: "7d0c2f1e-90ab-4c3d-8e5f-6a7b8c9d0e1f",
  /** SHA-256 of a key that is not imported yet. */
  newSha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  /** Id of an HMAC key. */
  hmacKeyId: "legacy-2024",
  /** Id of an HMAC key that is not created yet. */
  newHmacKeyId: "legacy-2025",
  unknownHmacKeyId: "legacy-1999",
  /** Id of the admin token that the issued key was created with. */
  creatorKeyId: "01991f39-1c0b-7e4d-8a57-6f5e4d3c2b1a",
  /** The audit event of the issued key. */
  issuedEventSeq: "12011990",
  unknownEventSeq: "9007199254740991",
  /** An actor with limits. */
  limitedActorId: "acme",
  unknownActorId: "no-such-actor",
  /** Id of a webhook endpoint. */
  webhookEndpointId: "billing",
  /** Id of a webhook endpoint that is not created yet. */
  newWebhookEndpointId: "portal",
  unknownWebhookEndpointId: "nothing",
  webhookUrl: "https://hooks.example.com/keyhold",
  /** A session of the key page, and the URL that opens it. */
  keyPageSessionId: "01991f3f-2c8b-7d11-9e02-1f2e3d4c5b6a",
  keyPageUrl: "https://keyhold.example.com/keys#eyJhbGciOiJkaXIi",
  /** Of the test event of the webhook endpoint. */
  webhookDeliveryId: "01991f3d-77bb-7c3f-a2e8-99aabbccddee",
} as const;

export const CREATED = "2026-11-22T09:30:00.123Z";
const EXPIRES = "2027-02-20T09:30:00.123Z";

/** What the issued key was made with. */
export const ISSUED: JsonObject = {
  name: "deploy bot",
  actor_id: "team_42",
  scopes: ["deploy", "read"],
  ttl: "90d",
  metadata: { env: "prod" },
};

/** What the imported key was made with. */
export const IMPORTED: JsonObject = {
  raw_key: SAMPLES.rawKey,
  name: "old portal",
  actor_id: "team_42",
  scopes: ["read"],
};

/** What the HMAC key was made with. */
export const HMAC_KEY: JsonObject = {
  hmac_key_id: SAMPLES.hmacKeyId,
  key: "dGhlIGtleSBvZiBITUFDcyBvZiBhbm90aGVyIHN5c3RlbQ",
  encoding: "TEXT_ENCODING_BASE64URL",
};

/** A quota. */
export const MONTHLY: JsonObject = {
  name: "monthly",
  limit: 10_000,
  period: "QUOTA_PERIOD_MONTH",
  anchor_time: "2001-01-01T00:00:00Z",
};

export function issuedKey(changes: JsonObject = {}): JsonObject {
  return {
    key_id: SAMPLES.issuedKeyId,
    name: "deploy bot",
    actor_id: "team_42",
    scopes: ["deploy", "read"],
    status: "KEY_STATUS_ACTIVE",
    metadata: { env: "prod" },
    create_time: CREATED,
    update_time: CREATED,
    expire_time: EXPIRES,
    hint: "kh_v1_…0000",
    created_by: "none:anonymous",
    restricted_to_actor_ids: [],
    rate_limits: [],
    quotas: [],
    previous_secrets: [],
    ...changes,
  };
}

export function importedKey(changes: JsonObject = {}): JsonObject {
  return {
    key_id: SAMPLES.importedKeyId,
    name: "old portal",
    actor_id: "team_42",
    scopes: ["read"],
    status: "KEY_STATUS_ACTIVE",
    metadata: {},
    create_time: CREATED,
    update_time: CREATED,
    hint: "…ghij",
    created_by: "none:anonymous",
    rate_limits: [],
    quotas: [],
    ...changes,
  };
}

/** An error in the form of AIP-193. */
export function errorBody(
  code: number,
  status: string,
  reason: string,
  message: string,
  more: ErrorParts = {},
): JsonObject {
  const { metadata = {}, field, violation = reason, details = [] } = more;
  const [, description = ""] = /^[\w.[\]]+: (.*)$/.exec(message) ?? [];
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "keyhold", metadata };
  const violations = {
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    field_violations: [{ field, description, reason: violation }],
  };
  const all = [info, ...(field === undefined ? [] : [violations]), ...details];
  return JSON.parse(JSON.stringify({ error: { code, message, status, details: all } }));
}

interface ErrorParts {
  readonly metadata?: Readonly<Record<string, string>>;
  /** The field at fault, whose description is the message without its name. */
  readonly field?: string;
  /** The reason of the violation; default: that of the error. */
  readonly violation?: InvalidReason;
  readonly details?: readonly JsonObject[];
}

export function invalidArgument(field: string, description: string, violation: InvalidReason): JsonObject {
  const message = `${field}: ${description}`;
  return errorBody(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", message, { field, violation });
}

export function keyNotFound(what: string): JsonObject {
  const { unknownKeyId: key_id } = SAMPLES;
  return errorBody(404, "NOT_FOUND", "API_KEY_NOT_FOUND", `there is no ${what} ${key_id}`, { metadata: { key_id } });
}

export function wrongState(reason: string, message: string): JsonObject {
  const { revokedKeyId: key_id } = SAMPLES;
  return errorBody(409, "FAILED_PRECONDITION", reason, message, { metadata: { key_id } });
}

/** A call for a key that does not exist. */
export function unknownKey(what: string, body?: JsonObject): Example {
  const request = { parameters: { key_id: SAMPLES.unknownKeyId }, ...(body && { body }) };
  return { summary: "The key does not exist", ...request, status: 404, response: keyNotFound(what) };
}

/** A call for a key that is revoked. */
export const REVOKED_KEY: Example = {
  summary: "The key is revoked",
  parameters: { key_id: SAMPLES.revokedKeyId },
  body: {},
  status: 409,
  response: wrongState("API_KEY_REVOKED", `key ${SAMPLES.revokedKeyId} is revoked`),
};

/** A verdict on a credential of the issued key. */
export function validVerdict(changes: JsonObject = {}): JsonObject {
  const { key_id, actor_id, scopes, metadata, status, expire_time } = issuedKey();
  const facts: JsonObject = JSON.parse(JSON.stringify({ key_id, actor_id, scopes, metadata, status, expire_time }));
  const type = "CREDENTIAL_TYPE_ISSUED_API_KEY";
  return {
    is_valid: true,
    ...facts,
    issuer: "keyhold",
    credential_type: type,
    missing_scopes: [],
    limits: [],
    ...changes,
  };
}

export const REVOKED_VERDICT: JsonObject = {
  is_valid: false,
  scopes: [],
  metadata: {},
  error_code: "VERIFICATION_ERROR_REVOKED",
  error_message: "the key is revoked",
  missing_scopes: [],
  limits: [],
};

/** What the webhook endpoint was made with. */
export const WEBHOOK_ENDPOINT: JsonObject = {
  ...{ endpoint_id: SAMPLES.webhookEndpointId, url: SAMPLES.webhookUrl },
  ...{ event_types: ["signing_key.rotated"], filter: "", description: "" },
};
