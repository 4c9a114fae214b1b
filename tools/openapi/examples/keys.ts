import type { JsonObject } from "@bufbuild/protobuf";
import type { Examples } from "./example.ts";
import {
  errorBody,
  importedKey,
  invalidArgument,
  issuedKey,
  keyNotFound,
  MONTHLY,
  REVOKED_KEY,
  REVOKED_VERDICT,
  SAMPLES,
  unknownKey,
  validVerdict,
  wrongState,
} from "./samples.ts";

const { issuedKeyId, importedKeyId, revokedKeyId, quotaKeyId, unknownKeyId, secret, revokedSecret, rawKey, newRawKey } =
  SAMPLES;
const REASON = "REVOCATION_REASON_KEY_COMPROMISE";

/** Of a JWT whose parts are texts. */
const TOKEN = ["header", "payload", "signature"].map((part) => Buffer.from(part).toString("base64url")).join(".");

const revocation = (key_id: string): JsonObject => ({
  key_id,
  status: "KEY_STATUS_REVOKED",
  revoke_time: "2026-11-22T10:00:00.456Z",
  revocation_reason: REASON,
});

const badCredential = errorBody(401, "UNAUTHENTICATED", "CREDENTIAL_INVALID", "credential: the key is revoked", {
  field: "credential",
  metadata: { error_code: "VERIFICATION_ERROR_REVOKED" },
});

const ofKind = (kind: string, key: JsonObject): JsonObject => ({
  ...{ kind, restricted_to_actor_ids: [], previous_secrets: [] },
  ...key,
});

const disabled = (kind: string, key: JsonObject): JsonObject => ({
  ...ofKind(kind, key),
  status: "KEY_STATUS_DISABLED",
  update_time: "2026-11-22T10:00:00.456Z",
  disable_time: "2026-11-22T10:00:00.456Z",
  disable_reason: "suspected leak",
  disabled_by: "none:anonymous",
});

const check = (name: string, result: string, detail: string): JsonObject => ({
  name: `VERIFICATION_CHECK_${name}`,
  result: `CHECK_RESULT_${result}`,
  detail,
});

const alreadyRevoked = wrongState("API_KEY_ALREADY_REVOKED", `key ${revokedKeyId} is already revoked`);

const bulkRequestId = "01991f3e-2b6d-7f40-8c15-9d8e7f6a5b4c";

const countDiffers = errorBody(
  409,
  "FAILED_PRECONDITION",
  "EXPECTED_COUNT_DIFFERS",
  "matching keys: 1, expected: 250; nothing was changed",
  { metadata: { matched_count: "1", expected_count: "250" } },
);

export const keyExamples: Readonly<Record<string, Examples>> = {
  ApiKeysService_DeriveToken: {
    jwt: {
      summary: "A JWT that is valid for an hour and can only read",
      body: {
        credential: secret,
        algorithm: "TOKEN_ALGORITHM_JWT",
        ttl: "1h",
        scopes: ["read"],
        custom_claims: { job: "nightly" },
        audience: ["reports"],
      },
      status: 200,
      response: {
        token: {
          token: TOKEN,
          token_id: "01991f3d-7c11-7e02-a5b6-c7d8e9f0a1b2",
          expire_time: "2026-11-22T11:00:00Z",
          scopes: ["read"],
          claims: { job: "nightly" },
          audience: ["reports"],
        },
      },
    },
    revoked: {
      summary: "The credential is invalid",
      body: { credential: revokedSecret, algorithm: "TOKEN_ALGORITHM_MACAROON" },
      status: 401,
      response: badCredential,
    },
    wider: {
      summary: "A scope that the credential lacks",
      body: { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT", scopes: ["admin"] },
      status: 403,
      response: errorBody(403, "PERMISSION_DENIED", "SCOPE_NOT_ALLOWED", "scopes: the credential does not have admin", {
        metadata: { scope: "admin" },
        field: "scopes",
      }),
    },
  },
  ApiKeysService_VerifyApiKey: {
    valid: { summary: "A valid credential", body: { credential: secret }, status: 200, response: validVerdict() },
    revoked: {
      summary: "An invalid credential",
      body: { credential: revokedSecret },
      status: 200,
      response: REVOKED_VERDICT,
    },
    empty: {
      summary: "No credential",
      body: { credential: "" },
      status: 400,
      response: invalidArgument("credential", "is required", "FIELD_REQUIRED"),
    },
  },
  ApiKeysService_BatchVerifyApiKeys: {
    verify: {
      summary: "Credentials of several keys",
      body: { requests: [{ credential: secret }, { credential: revokedSecret }] },
      status: 200,
      response: { results: [validVerdict(), REVOKED_VERDICT] },
    },
    empty: {
      summary: "An empty batch",
      body: { requests: [] },
      status: 400,
      response: invalidArgument("requests", "must have at least 1 item", "TOO_FEW_ITEMS"),
    },
  },
  ApiKeysService_GetApiKey: {
    get: {
      summary: "A key of either kind",
      parameters: { key_id: importedKeyId },
      status: 200,
      response: ofKind("KEY_KIND_IMPORTED", importedKey()),
    },
    unknown: unknownKey("key"),
  },
  ApiKeysService_ListApiKeys: {
    expiring: {
      summary: "The keys of an actor, of both kinds, that expire within 100 days",
      parameters: {
        page_size: 1,
        filter: 'actor_id="team_42" AND expire_time > now() AND expire_time <= now() + "100d"',
      },
      status: 200,
      response: {
        api_keys: [{ ...issuedKey(), kind: "KEY_KIND_ISSUED" }],
        next_page_token: "AgGfJhKbDH0iqbBmnJi5LRABnxbLmHs2mK1lmyA5W9nLxjZvRaGp",
      },
    },
    negative: {
      summary: "An invalid page size",
      parameters: { page_size: -1 },
      status: 400,
      response: invalidArgument("page_size", "must be at least 0", "OUT_OF_RANGE"),
    },
  },
  ApiKeysService_ExplainApiKey: {
    revoked: {
      summary: "Why a credential is rejected",
      body: { credential: revokedSecret, required_scopes: ["read"] },
      status: 200,
      response: {
        is_valid: false,
        error_code: "VERIFICATION_ERROR_REVOKED",
        error_message: "the key is revoked",
        checks: [
          check("FORMAT", "PASS", "the credential is well-formed"),
          check("SIGNATURE", "PASS", "the credential was issued by this service and is unaltered"),
          check("EXISTENCE", "PASS", `key ${revokedKeyId}`),
          check("REVOCATION", "FAIL", "the key is revoked"),
          check("EXPIRY", "PASS", "the key does not expire"),
          check("DISABLED", "PASS", "the key is not disabled"),
          check("ADDRESS", "SKIPPED", "the key is not restricted to specific IP addresses"),
          check("AUDIENCE", "SKIPPED", "the secret of a key has no audience"),
          check("SCOPES", "PASS", "the credential has read"),
        ],
        credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY",
        key_id: revokedKeyId,
        actor_id: "actor_1",
        status: "KEY_STATUS_REVOKED",
        missing_scopes: [],
        limits: [],
      },
    },
    unknown: {
      summary: "The key does not exist",
      body: { key_id: unknownKeyId },
      status: 404,
      response: keyNotFound("key"),
    },
    neither: {
      summary: "Neither a credential nor a key",
      body: {},
      status: 400,
      response: invalidArgument("credential", "is required unless key_id is set", "FIELD_REQUIRED"),
    },
  },
  ApiKeysService_RevokeApiKey: {
    revoke: {
      summary: "A key of either kind",
      parameters: { key_id: issuedKeyId },
      body: { reason: REASON },
      status: 200,
      response: revocation(issuedKeyId),
    },
    unknown: unknownKey("key", { reason: REASON }),
    again: {
      summary: "The key is already revoked",
      parameters: { key_id: revokedKeyId },
      body: { reason: REASON },
      status: 409,
      response: alreadyRevoked,
    },
  },
  ApiKeysService_BulkRevokeApiKeys: {
    count: {
      summary: "The number of keys that match",
      body: { filter: 'actor_id="team_42"', validate_only: true },
      status: 200,
      response: { matched_count: 250, changed_count: 0, done: false, request_id: "" },
    },
    revoke: {
      summary: "The keys of an actor; repeat the call with the request_id until done",
      body: {
        filter: 'actor_id="team_42"',
        reason: "REVOCATION_REASON_AFFILIATION_CHANGED",
        revocation_description: "the contract has ended",
      },
      status: 200,
      response: { matched_count: 250, changed_count: 250, done: true, request_id: bulkRequestId },
    },
    differs: {
      summary: "Another number of keys matches",
      body: { filter: `key_id="${issuedKeyId}"`, expected_count: 250 },
      status: 409,
      response: countDiffers,
    },
  },
  ApiKeysService_AdjustQuota: {
    subtract: {
      summary: "Subtract 500 verifications of this month",
      parameters: { key_id: quotaKeyId },
      body: { name: "monthly", delta: -500 },
      status: 200,
      response: ofKind("KEY_KIND_ISSUED", issuedKey({ key_id: quotaKeyId, quotas: [MONTHLY] })),
    },
    unknown: {
      summary: "No such quota",
      parameters: { key_id: issuedKeyId },
      body: { name: "daily", delta: -500 },
      status: 404,
      response: errorBody(404, "NOT_FOUND", "QUOTA_NOT_FOUND", `name: key ${issuedKeyId} has no quota of this name`, {
        field: "name",
        metadata: { key_id: issuedKeyId },
      }),
    },
  },
  ApiKeysService_BulkDisableApiKeys: {
    disable: {
      summary: "The keys of an actor; repeat the call with the request_id until done",
      body: { filter: 'actor_id="team_42"', reason: "the invoice is overdue" },
      status: 200,
      response: { matched_count: 250, changed_count: 250, done: true, request_id: bulkRequestId },
    },
    all: {
      summary: "No filter",
      body: { filter: "" },
      status: 400,
      response: invalidArgument("filter", "is required", "FIELD_REQUIRED"),
    },
  },
  ApiKeysService_RevokeIssuedApiKey: {
    revoke: {
      summary: "An issued key",
      parameters: { key_id: issuedKeyId },
      body: { reason: REASON },
      status: 200,
      response: revocation(issuedKeyId),
    },
  },
  ApiKeysService_RevokeImportedApiKey: {
    revoke: {
      summary: "An imported key",
      parameters: { key_id: importedKeyId },
      body: { reason: REASON },
      status: 200,
      response: revocation(importedKeyId),
    },
  },
  ApiKeysService_DisableApiKey: {
    disable: {
      summary: "A key of either kind",
      parameters: { key_id: issuedKeyId },
      body: { reason: "suspected leak" },
      status: 200,
      response: disabled("KEY_KIND_ISSUED", issuedKey()),
    },
    revoked: REVOKED_KEY,
  },
  ApiKeysService_DisableIssuedApiKey: {
    disable: {
      summary: "An issued key",
      parameters: { key_id: issuedKeyId },
      body: { reason: "suspected leak" },
      status: 200,
      response: disabled("KEY_KIND_ISSUED", issuedKey()),
    },
    unknown: unknownKey("issued key", {}),
  },
  ApiKeysService_DisableImportedApiKey: {
    disable: {
      summary: "An imported key",
      parameters: { key_id: importedKeyId },
      body: { reason: "suspected leak" },
      status: 200,
      response: disabled("KEY_KIND_IMPORTED", importedKey()),
    },
    unknown: unknownKey("imported key", {}),
  },
  ApiKeysService_EnableApiKey: {
    enable: {
      summary: "A key of either kind",
      parameters: { key_id: issuedKeyId },
      body: {},
      status: 200,
      response: ofKind("KEY_KIND_ISSUED", issuedKey()),
    },
    revoked: REVOKED_KEY,
  },
  ApiKeysService_EnableIssuedApiKey: {
    enable: {
      summary: "An issued key",
      parameters: { key_id: issuedKeyId },
      body: {},
      status: 200,
      response: ofKind("KEY_KIND_ISSUED", issuedKey()),
    },
    unknown: unknownKey("issued key", {}),
  },
  ApiKeysService_EnableImportedApiKey: {
    enable: {
      summary: "An imported key",
      parameters: { key_id: importedKeyId },
      body: {},
      status: 200,
      response: ofKind("KEY_KIND_IMPORTED", importedKey()),
    },
    unknown: unknownKey("imported key", {}),
  },
  SelfServiceService_SelfRevokeApiKey: {
    revoke: {
      summary: "A key, with its own secret",
      body: { credential: rawKey, reason: REASON },
      status: 200,
      response: revocation(importedKeyId),
    },
    unknown: {
      summary: "The credential is invalid",
      body: { credential: newRawKey, reason: REASON },
      status: 401,
      response: errorBody(401, "UNAUTHENTICATED", "CREDENTIAL_INVALID", "credential: no such key", {
        field: "credential",
        metadata: { error_code: "VERIFICATION_ERROR_NOT_FOUND" },
      }),
    },
    again: {
      summary: "The key is already revoked",
      body: { credential: revokedSecret, reason: REASON },
      status: 409,
      response: alreadyRevoked,
    },
  },
  DerivedKeysService_GetJwks: {
    jwks: {
      summary: "The public keys",
      status: 200,
      response: {
        keys: [
          {
            kty: "OKP",
            crv: "Ed25519",
            // RFC 8037, appendix A.2
            x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            kid: "01991f39-1a2b-7c3d-8e4f-5a6b7c8d9e0f",
            use: "sig",
            alg: "EdDSA",
          },
        ],
      },
    },
  },
};
