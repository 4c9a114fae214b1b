import type { Examples } from "./example.ts";
import {
  CREATED,
  errorBody,
  ISSUED,
  invalidArgument,
  issuedKey,
  REVOKED_KEY,
  SAMPLES,
  unknownKey,
  wrongState,
} from "./samples.ts";

const { issuedKeyId, revokedKeyId, secret, usedRequestId } = SAMPLES;
const UPDATED = "2026-11-22T10:00:00.456Z";
const GRACE_END = "2026-11-23T10:00:00.456Z";

export const issuedExamples: Readonly<Record<string, Examples>> = {
  IssuedApiKeysService_CreateIssuedApiKey: {
    issue: {
      summary: "A key for 90 days",
      body: ISSUED,
      status: 200,
      response: { secret, issued_api_key: issuedKey() },
    },
    office: {
      summary: "A key that is accepted from these addresses only",
      body: { ...ISSUED, ip_restriction: { allowed_cidrs: ["203.0.113.0/24", "2001:db8::7"] } },
      status: 200,
      response: {
        secret,
        issued_api_key: { ...issuedKey(), ip_restriction: { allowed_cidrs: ["203.0.113.0/24", "2001:db8::7/128"] } },
      },
    },
    hostBits: {
      summary: "An address where a block is expected",
      body: { ...ISSUED, ip_restriction: { allowed_cidrs: ["203.0.113.7/24"] } },
      status: 400,
      response: invalidArgument(
        "ip_restriction.allowed_cidrs[0]",
        "has host bits set to the right of the prefix /24; use the containing block 203.0.113.0/24",
        "INVALID_FORMAT",
      ),
    },
    nameless: {
      summary: "A required field is missing",
      body: { actor_id: "team_42" },
      status: 400,
      response: invalidArgument("name", "is required", "FIELD_REQUIRED"),
    },
    misspelt: {
      summary: "An unknown field",
      body: { ...ISSUED, scope: ["read"] },
      status: 400,
      response: invalidArgument("scope", "is not a known field; did you mean scopes?", "UNKNOWN_FIELD"),
    },
    reused: {
      summary: "A request_id that was used for a different request",
      body: { name: "another bot", actor_id: "team_42", request_id: usedRequestId },
      status: 409,
      response: errorBody(
        409,
        "ALREADY_EXISTS",
        "REQUEST_ID_REUSED",
        "request_id: was already used for a request with different parameters",
        {
          field: "request_id",
        },
      ),
    },
  },
  IssuedApiKeysService_GetIssuedApiKey: {
    get: { summary: "A key", parameters: { key_id: issuedKeyId }, status: 200, response: issuedKey() },
    unknown: unknownKey("issued key"),
    malformed: {
      summary: "An invalid key id",
      parameters: { key_id: "key-1" },
      status: 400,
      response: invalidArgument(
        "key_id",
        "is not a UUID such as 0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
        "INVALID_FORMAT",
      ),
    },
  },
  IssuedApiKeysService_ListIssuedApiKeys: {
    list: {
      summary: "The active keys of an actor",
      parameters: { page_size: 1, filter: 'actor_id="team_42" AND status=KEY_STATUS_ACTIVE' },
      status: 200,
      response: { issued_api_keys: [issuedKey()], next_page_token: "AZkfOlscfSGcRAobLD1OXw" },
    },
    misspelt: {
      summary: "A filter with an unknown field",
      parameters: { filter: 'owner="team_42"' },
      status: 400,
      response: invalidArgument(
        "filter",
        "unknown field at position 1 (an issued key has key_id, name, actor_id, kind, status, scopes, metadata, create_time, update_time, expire_time, last_used_time, rotate_time, revoke_time, disable_time, revocation_reason, hint, created_by, revoked_by, disabled_by, adopted, hash_algorithm)",
        "INVALID_FORMAT",
      ),
    },
  },
  IssuedApiKeysService_UpdateIssuedApiKey: {
    update: {
      summary: "New scopes",
      parameters: { key_id: issuedKeyId, update_mask: "scopes" },
      body: { scopes: ["read"] },
      status: 200,
      response: issuedKey({ scopes: ["read"], update_time: UPDATED }),
    },
    immutable: {
      summary: "An immutable field",
      parameters: { key_id: issuedKeyId, update_mask: "actor_id" },
      body: { name: "release bot" },
      status: 400,
      response: invalidArgument(
        "update_mask",
        "actor_id is not one of name, scopes, metadata, expire_time, ip_restriction, ttl, rate_limits, quotas",
        "FIELD_NOT_UPDATABLE",
      ),
    },
    revoked: {
      summary: "The key is revoked",
      parameters: { key_id: revokedKeyId, update_mask: "name" },
      body: { name: "release bot" },
      status: 409,
      response: wrongState("API_KEY_REVOKED", `key ${revokedKeyId} is revoked`),
    },
  },
  IssuedApiKeysService_RotateIssuedApiKey: {
    rotate: {
      summary: "A grace period of one day",
      parameters: { key_id: issuedKeyId },
      body: { grace_period: "24h" },
      status: 200,
      response: {
        secret,
        issued_api_key: issuedKey({
          ...{ update_time: UPDATED, rotate_time: UPDATED },
          previous_secrets: [{ hint: "kh_v1_…0000", create_time: CREATED, expire_time: GRACE_END }],
        }),
      },
    },
    unknown: unknownKey("issued key", {}),
    revoked: REVOKED_KEY,
  },
  IssuedApiKeysService_EndGracePeriod: {
    end: {
      summary: "The old secret is not in use any more",
      parameters: { key_id: issuedKeyId },
      body: {},
      status: 200,
      response: issuedKey({ update_time: UPDATED }),
    },
    unknown: unknownKey("issued key", {}),
  },
};
