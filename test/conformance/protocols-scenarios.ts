import { randomUUID } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { QuotaPeriod, RevocationReason } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService, TokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { CallersService } from "../../gen/keyhold/v2alpha1/callers_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { HmacKeysService, TextEncoding } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyPagePermission, KeyPagesService } from "../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { UsageService } from "../../gen/keyhold/v2alpha1/usage_pb.js";
import { WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { answered, type CallRpc } from "../support/protocols/call.ts";
import { derived, draft, imported, importHashed, issued, newRawKey } from "../support/protocols/keys.ts";
import { type Scenario, scenario } from "../support/protocols/scenario.ts";

const { method: issuedKeys } = IssuedApiKeysService;
const { method: importedKeys } = ImportedApiKeysService;
const { method: auditEvents } = AuditService;
const { method: hmacKeys } = HmacKeysService;
const { method: usage } = UsageService;
const { method: webhooks } = WebhookEndpointsService;
const { method: keys } = ApiKeysService;
const { method: actors } = ActorsService;

const record = {
  key_id: "<id>",
  name: "a key",
  actor_id: "actor~",
  scopes: ["read", "write"],
  status: "KEY_STATUS_ACTIVE",
  metadata: { team: "a" },
  create_time: "<time>",
  update_time: "<time>",
  expire_time: "<time>",
  created_by: "none:anonymous",
  rate_limits: [],
  quotas: [],
};
const MONTHLY = { name: "monthly", limit: 100, period: "QUOTA_PERIOD_MONTH", anchor_time: "<time>" };
const LIMIT = {
  ...{ name: "requests", quota: 9, window: "60s", burst: 9, on_demand: false },
  ...{ enforcement: "RATE_LIMIT_ENFORCEMENT_ENFORCED", on_outage: "OUTAGE_POLICY_DENY" },
};
const limited = (name: string) => ({
  ...{
    actor_id: `actor-${name}`,
    rate_limits: [LIMIT],
    quotas: [MONTHLY],
    create_time: "<time>",
    update_time: "<time>",
  },
});
const limitedActor = (call: CallRpc, name: string) =>
  call(actors.updateActor, {
    actor: {
      ...{ actorId: `actor-${name}`, rateLimits: [{ name: "requests", quota: 9, window: "1m" }] },
      quotas: [{ name: "monthly", limit: 100, period: QuotaPeriod.MONTH }],
    },
    updateMask: { paths: ["rate_limits", "quotas"] },
  });
const issuedRecord = { ...record, hint: "<hint>", restricted_to_actor_ids: [], previous_secrets: [] };
const importedRecord = { ...record, hint: "…tail" };
const revoked = { key_id: "<id>", status: "KEY_STATUS_REVOKED", revoke_time: "<time>" };
const valid = {
  is_valid: true,
  key_id: "<id>",
  actor_id: "actor~",
  scopes: ["read", "write"],
  metadata: { team: "a" },
  status: "KEY_STATUS_ACTIVE",
  expire_time: "<time>",
  issuer: "keyhold",
  missing_scopes: [],
  limits: [],
};
const LACKS_SCOPES = {
  is_valid: false,
  error_code: "VERIFICATION_ERROR_INSUFFICIENT_SCOPE",
  error_message: "the credential lacks required scopes",
};
const notValid = { is_valid: false, scopes: [], metadata: {}, missing_scopes: [], limits: [] };
const OTHER_AUDIENCE = { ...notValid, error_code: "VERIFICATION_ERROR_AUDIENCE_MISMATCH" };
const token = { token_id: "<id>", expire_time: "<time>", scopes: ["read", "write"], claims: {}, audience: [] };

/** Claims of every kind of value. */
const CLAIMS = { tenant: "t1", level: 3, list: [true, null, { deep: "ß" }] };

const HMAC_KEY = { hmacKeyId: "hmac-key", key: "c2VjcmV0", encoding: TextEncoding.BASE64 };
const firstEvent = {
  ...{ seq: "0", time: "<time>", action: "migration.created", resource_id: "audit_log", key_id: "", actor_id: "" },
  caller: expect.objectContaining({ method: "local", key_id: "", issuer: "" }),
  ...{ rpc: "", peer_ip: "", client_ip: "", user_agent: "", call_id: "", request_id: "", reason: "", salt: "<id>" },
  ...{ node: expect.any(String), changes: expect.arrayContaining([{ field: "name", after: "audit_log" }]) },
};

const hmacKey = {
  hmac_key_id: "hmac-key",
  create_time: "<time>",
  created_by: "none:anonymous",
  not_adopted_count: 0,
};

const ENDPOINT = { endpointId: "hooks", url: "https://hooks.invalid/", eventTypes: ["signing_key.rotated"] };

const webhookEndpoint = {
  ...{ endpoint_id: "hooks", url: "https://hooks.invalid/", event_types: ["signing_key.rotated"], filter: "" },
  ...{ description: "", disabled: false, disable_reason: "", create_time: "<time>", created_by: "none:anonymous" },
  ...{ update_time: "<time>", next_seq: "<seq>" },
};

/** Creates an endpoint of its own for a scenario. */
async function endpoint(call: CallRpc): Promise<string> {
  const endpointId = randomUUID();
  await call(webhooks.createWebhookEndpoint, { ...ENDPOINT, endpointId });
  return endpointId;
}

const ownEndpoint = { ...webhookEndpoint, endpoint_id: "<id>" };
const testDelivery = {
  ...{ delivery_id: "<id>", endpoint_id: "<id>", event_type: "webhook.test", create_time: "<time>" },
  ...{ state: "WEBHOOK_DELIVERY_STATE_PENDING", next_attempt_time: "<time>", attempts: [] },
};

/** `package.Service/Method` of every RPC of the API. */
const RPCS = SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));

const endless = ({ expire_time, ...fields }: typeof record) => fields;

/** At least one scenario for each RPC. */
export const SCENARIOS: readonly Scenario[] = [
  scenario(
    issuedKeys.createIssuedApiKey,
    "returns the secret and the record",
    (call) => call(issuedKeys.createIssuedApiKey, draft()),
    {
      secret: "<secret>",
      issued_api_key: issuedRecord,
    },
  ),
  scenario(
    issuedKeys.createIssuedApiKey,
    "returns no secret when it is repeated",
    async (call) => {
      const request = { ...draft(), requestId: newRawKey() };
      await call(issuedKeys.createIssuedApiKey, request);
      return call(issuedKeys.createIssuedApiKey, request);
    },
    { issued_api_key: issuedRecord },
  ),
  scenario(
    issuedKeys.getIssuedApiKey,
    "reads the record",
    async (call) => call(issuedKeys.getIssuedApiKey, { keyId: (await issued(call)).keyId }),
    issuedRecord,
  ),
  scenario(
    issuedKeys.listIssuedApiKeys,
    "finds by the filter, and pages",
    async (call) => {
      const { actorId } = await issued(call, { name: "the first" });
      await issued(call, { actorId, name: "the second" });
      const filter = `actor_id="${actorId}" AND status=KEY_STATUS_ACTIVE`;
      const first = answered(await call(issuedKeys.listIssuedApiKeys, { pageSize: 1, filter }));
      return call(issuedKeys.listIssuedApiKeys, { pageSize: 1, filter, pageToken: first.nextPageToken });
    },
    { issued_api_keys: [{ ...issuedRecord, name: "the first" }], next_page_token: "" },
  ),
  scenario(
    issuedKeys.updateIssuedApiKey,
    "changes what the mask names",
    async (call) => {
      const { keyId } = await issued(call);
      const issuedApiKey = { keyId, name: "renamed", scopes: ["read"], metadata: { ignored: "yes" } };
      return call(issuedKeys.updateIssuedApiKey, { issuedApiKey, updateMask: { paths: ["name", "scopes"] } });
    },
    { ...issuedRecord, name: "renamed", scopes: ["read"] },
  ),
  scenario(
    issuedKeys.updateIssuedApiKey,
    "sets the expiry by a ttl",
    async (call) => {
      const { keyId } = await issued(call, { ttl: undefined });
      return call(issuedKeys.updateIssuedApiKey, {
        issuedApiKey: { keyId, ttl: "2h" },
        updateMask: { paths: ["ttl"] },
      });
    },
    issuedRecord,
  ),
  scenario(
    issuedKeys.updateIssuedApiKey,
    "clears the expiry",
    async (call) => {
      const { keyId } = await issued(call);
      const updateMask = { paths: ["expire_time"] };
      return call(issuedKeys.updateIssuedApiKey, { issuedApiKey: { keyId }, updateMask });
    },
    endless(issuedRecord),
  ),
  scenario(
    issuedKeys.rotateIssuedApiKey,
    "returns the new secret",
    async (call) => call(issuedKeys.rotateIssuedApiKey, { keyId: (await issued(call)).keyId, gracePeriod: "1h" }),
    {
      secret: "<secret>",
      issued_api_key: {
        ...{ ...issuedRecord, rotate_time: "<time>" },
        previous_secrets: [{ hint: "<hint>", create_time: "<time>", expire_time: "<time>" }],
      },
    },
  ),
  scenario(
    issuedKeys.endGracePeriod,
    "returns the key",
    async (call) => call(issuedKeys.endGracePeriod, { keyId: (await issued(call)).keyId }),
    issuedRecord,
  ),
  scenario(
    importedKeys.createImportedApiKey,
    "returns the record without the raw key",
    (call) => call(importedKeys.createImportedApiKey, { ...draft(), rawKey: newRawKey() }),
    importedRecord,
  ),
  scenario(
    importedKeys.batchCreateImportedApiKeys,
    "returns a result for each item, valid or not",
    (call) => {
      const rawKey = newRawKey();
      const requests = [{ ...draft(), rawKey }, { ...draft(), rawKey }, { ...draft() }];
      return call(importedKeys.batchCreateImportedApiKeys, { requests });
    },
    {
      results: [
        { index: 0, imported_api_key: importedRecord, warnings: [] },
        {
          index: 1,
          error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS",
          error_message: "raw_key: is already imported",
          warnings: [],
        },
        {
          index: 2,
          error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT",
          error_message: "raw_key: is required without raw_key_hash",
          warnings: [],
        },
      ],
      success_count: 1,
      failure_count: 2,
    },
  ),
  scenario(
    importedKeys.getImportedApiKey,
    "reads the record",
    async (call) => call(importedKeys.getImportedApiKey, { keyId: (await imported(call)).keyId }),
    importedRecord,
  ),
  scenario(
    importedKeys.listImportedApiKeys,
    "finds by the filter",
    async (call) => {
      const { actorId } = await imported(call, { metadata: { note: "ä+b&c%20/=" } });
      return call(importedKeys.listImportedApiKeys, { filter: `actor_id="${actorId}" AND metadata.note="ä+b&c%20/="` });
    },
    { imported_api_keys: [{ ...importedRecord, metadata: { note: "ä+b&c%20/=" } }], next_page_token: "" },
  ),
  scenario(
    importedKeys.updateImportedApiKey,
    "changes the fields that the record sets when there is no mask",
    async (call) =>
      call(importedKeys.updateImportedApiKey, {
        importedApiKey: { keyId: (await imported(call)).keyId, name: "renamed" },
      }),
    { ...importedRecord, name: "renamed" },
  ),
  scenario(
    importedKeys.updateImportedApiKey,
    "sets the expiry",
    async (call) => {
      const { keyId } = await imported(call, { ttl: undefined });
      const importedApiKey = { keyId, expireTime: timestampFromMs(Date.now() + 3_600_000) };
      return call(importedKeys.updateImportedApiKey, { importedApiKey, updateMask: { paths: ["expire_time"] } });
    },
    importedRecord,
  ),
  scenario(
    importedKeys.updateImportedApiKey,
    "clears the expiry",
    async (call) => {
      const { keyId } = await imported(call);
      const updateMask = { paths: ["expire_time"] };
      return call(importedKeys.updateImportedApiKey, { importedApiKey: { keyId }, updateMask });
    },
    endless(importedRecord),
  ),
  scenario(
    importedKeys.deleteImportedApiKey,
    "returns an empty message",
    async (call) => call(importedKeys.deleteImportedApiKey, { keyId: (await imported(call)).keyId }),
    {},
  ),
  scenario(
    keys.deriveToken,
    "makes a JWT with the requested claims and audience",
    async (call) => {
      const { secret: credential } = await issued(call);
      const restriction = { ttl: "5m", scopes: ["read"], audience: ["orders", "billing"] };
      const request = { credential, algorithm: TokenAlgorithm.JWT, ...restriction, customClaims: CLAIMS };
      return call(keys.deriveToken, request);
    },
    {
      token: {
        ...token,
        token: "<jwt>",
        scopes: ["read"],
        audience: ["orders", "billing"],
        claims: CLAIMS,
      },
    },
  ),
  scenario(
    keys.deriveToken,
    "makes a macaroon",
    async (call) =>
      call(keys.deriveToken, { credential: (await issued(call)).secret, algorithm: TokenAlgorithm.MACAROON }),
    { token: { ...token, token: "<macaroon>" } },
  ),
  scenario(
    keys.deriveToken,
    "refuses a disabled key",
    async (call) => {
      const { secret: credential, keyId } = await issued(call);
      await call(keys.disableApiKey, { keyId });
      return call(keys.deriveToken, { credential, algorithm: TokenAlgorithm.JWT });
    },
    {
      code: "UNAUTHENTICATED",
      message: "credential: the key is disabled",
      details: {
        "google.rpc.ErrorInfo": {
          ...{ reason: "CREDENTIAL_INVALID", domain: "keyhold" },
          metadata: { error_code: "VERIFICATION_ERROR_DISABLED" },
        },
        "google.rpc.BadRequest": {
          field_violations: [expect.objectContaining({ field: "credential", description: "the key is disabled" })],
        },
      },
      headers: { "www-authenticate": 'Bearer realm="keyhold"' },
    },
  ),
  scenario(
    keys.verifyApiKey,
    "rejects a disabled key",
    async (call) => {
      const { secret: credential, keyId } = await issued(call);
      await call(keys.disableApiKey, { keyId });
      return call(keys.verifyApiKey, { credential });
    },
    { ...notValid, error_code: "VERIFICATION_ERROR_DISABLED", error_message: "the key is disabled" },
  ),
  scenario(
    keys.verifyApiKey,
    "accepts an issued secret",
    async (call) => call(keys.verifyApiKey, { credential: (await issued(call)).secret }),
    { ...valid, credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY" },
  ),
  scenario(
    keys.verifyApiKey,
    "returns a rejection as a verdict, not as an error",
    (call) => call(keys.verifyApiKey, { credential: "of-no-one" }),
    { ...notValid, error_code: "VERIFICATION_ERROR_NOT_FOUND", error_message: "no such key" },
  ),
  scenario(
    keys.verifyApiKey,
    "returns the claims of a token for the named audience",
    async (call) => {
      const credential = await derived(call, (await issued(call)).secret, CLAIMS, ["orders", "billing"]);
      return call(keys.verifyApiKey, { credential, audience: "billing", requiredScopes: ["write"] });
    },
    { ...valid, credential_type: "CREDENTIAL_TYPE_JWT", claims: CLAIMS },
  ),
  scenario(
    keys.verifyApiKey,
    "returns the missing scopes together with the identity",
    async (call) => {
      const credential = await derived(call, (await issued(call)).secret, { tenant: "t1" });
      return call(keys.verifyApiKey, { credential, requiredScopes: ["write", "admin", "delete", "admin"] });
    },
    {
      ...valid,
      ...LACKS_SCOPES,
      credential_type: "CREDENTIAL_TYPE_JWT",
      missing_scopes: ["admin", "delete"],
      claims: { tenant: "t1" },
    },
  ),
  scenario(
    keys.batchVerifyApiKeys,
    "judges each credential by its own audience and scopes",
    async (call) => {
      const { secret } = await issued(call);
      const ours = await derived(call, secret, CLAIMS, ["orders"]);
      const anyone = await derived(call, secret);
      return call(keys.batchVerifyApiKeys, {
        requests: [
          { credential: ours, audience: "orders" },
          { credential: ours, audience: "billing" },
          { credential: ours },
          { credential: anyone, audience: "orders" },
          { credential: secret, audience: "orders", requiredScopes: ["read"] },
          { credential: secret, requiredScopes: ["delete"] },
          { credential: secret, requiredScopes: ["not one scope"] },
        ],
      });
    },
    {
      results: [
        { ...valid, credential_type: "CREDENTIAL_TYPE_JWT", claims: CLAIMS },
        { ...OTHER_AUDIENCE, error_message: "the token is not for this audience" },
        { ...OTHER_AUDIENCE, error_message: "the token has an audience, but the request specifies none" },
        { ...OTHER_AUDIENCE, error_message: "the token is not for this audience" },
        { ...valid, credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY" },
        {
          ...valid,
          ...LACKS_SCOPES,
          credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY",
          missing_scopes: ["delete"],
        },
        {
          ...notValid,
          error_code: "VERIFICATION_ERROR_INVALID_FORMAT",
          error_message: "required_scopes[0]: must be visible ASCII without spaces",
        },
      ],
    },
  ),
  scenario(
    keys.batchVerifyApiKeys,
    "returns a verdict for each credential",
    async (call) => {
      const { secret } = await issued(call);
      const { rawKey } = await imported(call);
      const credentials = [secret, rawKey, await derived(call, secret), "of-no-one", ""];
      return call(keys.batchVerifyApiKeys, { requests: credentials.map((credential) => ({ credential })) });
    },
    {
      results: [
        { ...valid, credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY" },
        { ...valid, credential_type: "CREDENTIAL_TYPE_IMPORTED_API_KEY" },
        { ...valid, credential_type: "CREDENTIAL_TYPE_JWT", claims: {} },
        { ...notValid, error_code: "VERIFICATION_ERROR_NOT_FOUND", error_message: "no such key" },
        {
          ...notValid,
          error_code: "VERIFICATION_ERROR_INVALID_FORMAT",
          error_message: "credential: is required",
        },
      ],
    },
  ),
  scenario(
    keys.getApiKey,
    "returns a key of either kind",
    async (call) => call(keys.getApiKey, { keyId: (await imported(call)).keyId }),
    { ...importedRecord, restricted_to_actor_ids: [], previous_secrets: [], kind: "KEY_KIND_IMPORTED" },
  ),
  scenario(
    keys.listApiKeys,
    "finds keys of both kinds",
    async (call) => {
      const { actorId } = await issued(call);
      await imported(call, { actorId });
      return call(keys.listApiKeys, { filter: `actor_id="${actorId}"` });
    },
    {
      api_keys: [
        { ...importedRecord, restricted_to_actor_ids: [], previous_secrets: [], kind: "KEY_KIND_IMPORTED" },
        { ...issuedRecord, kind: "KEY_KIND_ISSUED" },
      ],
      next_page_token: "",
    },
  ),
  scenario(
    keys.listApiKeys,
    "orders by a field, and pages",
    async (call) => {
      const { actorId } = await issued(call, { name: "b" });
      await issued(call, { actorId, name: "c" });
      await imported(call, { actorId, name: "a" });
      const list = { filter: `actor_id="${actorId}"`, orderBy: "name desc", pageSize: 2 };
      const first = answered(await call(keys.listApiKeys, list));
      return call(keys.listApiKeys, { ...list, pageToken: first.nextPageToken });
    },
    {
      api_keys: [
        { ...importedRecord, name: "a", restricted_to_actor_ids: [], previous_secrets: [], kind: "KEY_KIND_IMPORTED" },
      ],
      next_page_token: "",
    },
  ),
  scenario(
    actors.updateActor,
    "creates an actor with limits",
    (call) => limitedActor(call, "updated"),
    limited("updated"),
  ),
  scenario(
    actors.getActor,
    "returns the limits of an actor",
    async (call) => {
      await limitedActor(call, "read");
      return call(actors.getActor, { actorId: "actor-read" });
    },
    limited("read"),
  ),
  scenario(
    actors.listActors,
    "returns actors by their ids",
    async (call) => {
      await limitedActor(call, "first");
      return call(actors.listActors, { pageSize: 1 });
    },
    { actors: [expect.objectContaining({ rate_limits: [LIMIT] })], next_page_token: expect.any(String) },
  ),
  scenario(
    actors.adjustActorQuota,
    "returns the actor with the quota",
    async (call) => {
      await limitedActor(call, "adjusted");
      return call(actors.adjustActorQuota, { actorId: "actor-adjusted", name: "monthly", delta: -7 });
    },
    limited("adjusted"),
  ),
  scenario(
    actors.deleteActor,
    "removes the limits of an actor",
    async (call) => {
      const name = randomUUID();
      await limitedActor(call, name);
      return call(actors.deleteActor, { actorId: `actor-${name}` });
    },
    {},
  ),
  scenario(
    keys.adjustQuota,
    "returns the key with the quota",
    async (call) => {
      const quotas = [{ name: "monthly", limit: 100, period: QuotaPeriod.MONTH }];
      return call(keys.adjustQuota, { keyId: (await issued(call, { quotas })).keyId, name: "monthly", delta: 7 });
    },
    { ...issuedRecord, kind: "KEY_KIND_ISSUED", quotas: [MONTHLY] },
  ),
  scenario(
    keys.disableApiKey,
    "returns the disabled key",
    async (call) => call(keys.disableApiKey, { keyId: (await issued(call)).keyId, reason: "suspected leak" }),
    {
      ...{ ...issuedRecord, kind: "KEY_KIND_ISSUED", status: "KEY_STATUS_DISABLED" },
      ...{ disable_time: "<time>", disable_reason: "suspected leak", disabled_by: "none:anonymous" },
    },
  ),
  scenario(
    keys.enableApiKey,
    "returns the enabled key",
    async (call) => {
      const { keyId } = await imported(call);
      await call(keys.disableApiKey, { keyId });
      return call(keys.enableApiKey, { keyId, collection: "importedApiKeys" });
    },
    { ...importedRecord, restricted_to_actor_ids: [], previous_secrets: [], kind: "KEY_KIND_IMPORTED" },
  ),
  scenario(
    keys.explainApiKey,
    "explains why a credential is rejected",
    async (call) =>
      call(keys.explainApiKey, { credential: (await issued(call)).secret, requiredScopes: ["read", "admin"] }),
    {
      is_valid: false,
      error_code: "VERIFICATION_ERROR_INSUFFICIENT_SCOPE",
      error_message: "the credential lacks required scopes",
      checks: [
        ["FORMAT", "PASS", "the credential is well-formed"],
        ["SIGNATURE", "PASS", "the credential was issued by this service and is unaltered"],
        ["EXISTENCE", "PASS", "key <id>"],
        ["REVOCATION", "PASS", "the key is not revoked, and its secret is valid"],
        ["EXPIRY", "PASS", "the credential expires at <time>"],
        ["DISABLED", "PASS", "the key is not disabled"],
        ["ADDRESS", "SKIPPED", "the key is not restricted to specific IP addresses"],
        ["AUDIENCE", "SKIPPED", "the secret of a key has no audience"],
        ["SCOPES", "FAIL", "the credential lacks admin"],
        ["LIMITS", "SKIPPED", "neither the key nor its actor has limits"],
      ].map(([name, result, detail]) => ({
        name: `VERIFICATION_CHECK_${name}`,
        result: `CHECK_RESULT_${result}`,
        detail,
      })),
      credential_type: "CREDENTIAL_TYPE_ISSUED_API_KEY",
      key_id: "<id>",
      actor_id: "actor~",
      status: "KEY_STATUS_ACTIVE",
      missing_scopes: ["admin"],
      limits: [],
    },
  ),
  scenario(
    importedKeys.createImportedApiKey,
    "returns the record of a key of which only a hash is known",
    (call) => importHashed(call),
    { ...importedRecord, hint: "", hash_algorithm: "HASH_ALGORITHM_SHA256" },
  ),
  scenario(
    hmacKeys.createHmacKey,
    "returns the key without its secret, and again when it is repeated",
    async (call) => {
      await call(hmacKeys.createHmacKey, HMAC_KEY);
      return call(hmacKeys.createHmacKey, HMAC_KEY);
    },
    hmacKey,
  ),
  scenario(
    hmacKeys.listHmacKeys,
    "returns all keys",
    async (call) => {
      await call(hmacKeys.createHmacKey, HMAC_KEY);
      return call(hmacKeys.listHmacKeys, {});
    },
    { hmac_keys: [hmacKey] },
  ),
  scenario(
    hmacKeys.deleteHmacKey,
    "deletes a key",
    async (call) => {
      const hmacKeyId = randomUUID();
      await call(hmacKeys.createHmacKey, { ...HMAC_KEY, hmacKeyId });
      return call(hmacKeys.deleteHmacKey, { hmacKeyId });
    },
    {},
  ),
  scenario(
    keys.revokeApiKey,
    "returns the new state of the key",
    async (call) => {
      const reason = RevocationReason.PRIVILEGE_WITHDRAWN;
      return call(keys.revokeApiKey, { keyId: (await issued(call)).keyId, reason, revocationDescription: "left" });
    },
    { ...revoked, revocation_reason: "REVOCATION_REASON_PRIVILEGE_WITHDRAWN" },
  ),
  scenario(
    keys.revokeApiKey,
    "accepts the kind of the key",
    async (call) => call(keys.revokeApiKey, { keyId: (await imported(call)).keyId, collection: "importedApiKeys" }),
    { ...revoked, revocation_reason: "REVOCATION_REASON_UNSPECIFIED" },
  ),
  scenario(
    keys.bulkRevokeApiKeys,
    "returns its progress",
    async (call) => {
      return call(keys.bulkRevokeApiKeys, { filter: `key_id="${(await issued(call)).keyId}"` });
    },
    { matched_count: 1, changed_count: 1, done: true, request_id: "<id>" },
  ),
  scenario(
    keys.bulkDisableApiKeys,
    "returns the number of keys that it would change",
    async (call) => {
      const filter = `key_id="${(await imported(call)).keyId}"`;
      return call(keys.bulkDisableApiKeys, { filter, validateOnly: true });
    },
    { matched_count: 1, changed_count: 0, done: false, request_id: "" },
  ),
  scenario(
    SelfServiceService.method.selfRevokeApiKey,
    "returns the new state of the key",
    async (call) => {
      const { secret: credential } = await issued(call);
      return call(SelfServiceService.method.selfRevokeApiKey, { credential, reason: RevocationReason.KEY_COMPROMISE });
    },
    { ...revoked, revocation_reason: "REVOCATION_REASON_KEY_COMPROMISE" },
  ),
  scenario(
    DerivedKeysService.method.getJwks,
    "returns a public key",
    (call) => call(DerivedKeysService.method.getJwks, {}),
    { keys: [{ kty: "OKP", crv: "Ed25519", x: "<public key>", kid: "<kid>", use: "sig", alg: "EdDSA" }] },
  ),
  scenario(
    KeyPagesService.method.createKeyPageSession,
    "returns a link to the server that is called",
    (call) =>
      call(KeyPagesService.method.createKeyPageSession, {
        ...{ actorId: "owner", permissions: [KeyPagePermission.CREATE, KeyPagePermission.VIEW_USAGE] },
        ...{ allowedScopes: ["read"], maxTtl: "90d", returnUrl: "https://app.example" },
      }),
    {
      ...{ session_id: "<id>", url_expire_time: "<time>" },
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/keys#<token>$/),
    },
  ),
  scenario(
    CallersService.method.whoAmI,
    "returns a caller that needs no credential, who may call every RPC",
    (call) => call(CallersService.method.whoAmI, {}),
    {
      ...{ subject: "anonymous", auth_method: "AUTH_METHOD_NONE", scopes: ["keyhold:admin"] },
      ...{ actor_restricted: false, restricted_to_actor_ids: [], permitted_rpcs: RPCS.toSorted() },
    },
  ),
  scenario(
    auditEvents.getAuditEvent,
    "returns the event",
    (call) => call(auditEvents.getAuditEvent, { seq: 0n }),
    firstEvent,
  ),
  scenario(
    auditEvents.listAuditEvents,
    "returns the events that match",
    (call) => call(auditEvents.listAuditEvents, { filter: "seq=0" }),
    { audit_events: [firstEvent], next_page_token: "" },
  ),
  scenario(
    auditEvents.getAuditCheckpoint,
    "returns a signed note and its key",
    (call) => call(auditEvents.getAuditCheckpoint, {}),
    { checkpoint: expect.stringMatching(/^keyhold\/.*\n\d+\n/), verifier_key: expect.stringMatching(/^keyhold\//) },
  ),
  scenario(
    auditEvents.getAuditProof,
    "returns the hashes that lead to the root",
    (call) => call(auditEvents.getAuditProof, { seq: 0n, treeSize: 2n }),
    { tree_size: "2", entry: expect.stringMatching(/^{"action":/), hashes: [expect.stringMatching(/^[\w+/]{43}=$/)] },
  ),
  scenario(usage.queryUsage, "returns counts", (call) => call(usage.queryUsage, { actorId: "nobody", step: "1h" }), {
    usage_counts: [],
    next_page_token: "",
  }),
  scenario(
    usage.getKeyUsage,
    "returns the counts of a key",
    async (call) => call(usage.getKeyUsage, { keyId: (await issued(call)).keyId }),
    {
      ...{ key_id: "<id>", start_time: "<time>", end_time: "<time>" },
      ...{ valid_count: "0", rejected_count: "0", usage_counts: [] },
    },
  ),
  scenario(
    webhooks.createWebhookEndpoint,
    "returns the endpoint without its secret when it is repeated",
    async (call) => {
      await call(webhooks.createWebhookEndpoint, ENDPOINT);
      return call(webhooks.createWebhookEndpoint, ENDPOINT);
    },
    { secret: "", webhook_endpoint: webhookEndpoint },
  ),
  scenario(
    webhooks.getWebhookEndpoint,
    "returns the endpoint",
    async (call) => call(webhooks.getWebhookEndpoint, { endpointId: await endpoint(call) }),
    ownEndpoint,
  ),
  scenario(
    webhooks.listWebhookEndpoints,
    "returns all endpoints",
    async (call) => {
      await endpoint(call);
      return call(webhooks.listWebhookEndpoints, {});
    },
    { webhook_endpoints: expect.arrayContaining([ownEndpoint]) },
  ),
  scenario(
    webhooks.updateWebhookEndpoint,
    "returns the new state of the endpoint",
    async (call) => {
      const change = { endpointId: await endpoint(call), filter: "seq > 7", disabled: true };
      return call(webhooks.updateWebhookEndpoint, {
        webhookEndpoint: change,
        updateMask: { paths: ["filter", "disabled"] },
      });
    },
    { ...ownEndpoint, filter: "seq > 7", disabled: true, disable_reason: "caller", disable_time: "<time>" },
  ),
  scenario(
    webhooks.deleteWebhookEndpoint,
    "deletes an endpoint",
    async (call) => call(webhooks.deleteWebhookEndpoint, { endpointId: await endpoint(call) }),
    {},
  ),
  scenario(
    webhooks.rotateWebhookEndpointSecret,
    "returns the new secret",
    async (call) => call(webhooks.rotateWebhookEndpointSecret, { endpointId: await endpoint(call), gracePeriod: "1h" }),
    {
      secret: "<secret>",
      webhook_endpoint: { ...ownEndpoint, secret_rotate_time: "<time>", old_secret_expire_time: "<time>" },
    },
  ),
  scenario(
    webhooks.sendTestWebhookEvent,
    "returns the delivery",
    async (call) => call(webhooks.sendTestWebhookEvent, { endpointId: await endpoint(call) }),
    testDelivery,
  ),
  scenario(
    webhooks.listWebhookDeliveries,
    "returns the deliveries",
    async (call) => {
      const endpointId = await endpoint(call);
      await call(webhooks.sendTestWebhookEvent, { endpointId });
      return call(webhooks.listWebhookDeliveries, { endpointId });
    },
    { webhook_deliveries: [testDelivery], next_page_token: "" },
  ),
  scenario(
    webhooks.redeliverWebhook,
    "returns the delivery",
    async (call) => {
      const endpointId = await endpoint(call);
      const { deliveryId } = answered(await call(webhooks.sendTestWebhookEvent, { endpointId }));
      return call(webhooks.redeliverWebhook, { endpointId, deliveryId });
    },
    testDelivery,
  ),
  scenario(
    webhooks.replayWebhookEvents,
    "returns the endpoint with its position",
    async (call) => call(webhooks.replayWebhookEvents, { endpointId: await endpoint(call), seq: 0n }),
    ownEndpoint,
  ),
  scenario(Health.method.check, "says that the server serves", (call) => call(Health.method.check, {}), {
    status: "SERVING",
  }),
];
