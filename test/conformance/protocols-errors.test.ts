import type { DescMessage, DescMethodUnary } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { HashAlgorithm } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService, TokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { HmacKeysService, TextEncoding } from "../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { WebhookEndpointsService } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { table } from "../support/conformance.ts";
import { lockTable } from "../support/locked-row.ts";
import { answered, type CallRpc, type Reply } from "../support/protocols/call.ts";
import { derived, draft, imported, importHashed, issued, newRawKey, slowHashed } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols, type Scenario, scenario } from "../support/protocols/scenario.ts";
import { type Json, paths } from "../support/rest.ts";

/** Nothing listens on port 1, so the issuer of access tokens is unreachable. */
const suite = useProtocols({
  KEYHOLD_AUTH: "admin-token,oidc,none",
  KEYHOLD_OIDC_ISSUER: "http://127.0.0.1:1",
  KEYHOLD_OIDC_AUDIENCE: "keyhold",
});

/** Causes errors that need a broken database or a race, by the name of the call's key. */
const FAILING_TRIGGER = `
  CREATE FUNCTION fail_by_name() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.name LIKE 'SQLSTATE %' THEN
      RAISE EXCEPTION 'a cause for the log alone' USING ERRCODE = substr(NEW.name, 10);
    END IF;
    IF NEW.name = 'expired' THEN NEW.expire_time := NEW.create_time; END IF;
    IF NEW.name = 'outdated' AND TG_OP = 'UPDATE' THEN
      RAISE EXCEPTION 'as migration 0017' USING ERRCODE = 'KH001', DETAIL = 'host:1 (0.1.0)';
    END IF;
    IF NEW.name = 'concurrent' AND TG_OP = 'UPDATE' THEN RETURN NULL; END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER fail_by_name BEFORE INSERT OR UPDATE ON api_keys FOR EACH ROW EXECUTE FUNCTION fail_by_name()`;

/** Fails each statement that reads the row of a key by this name, as after a statement timeout. */
const FAILING_POLICY = `
  CREATE FUNCTION time_out() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'a cause for the log alone' USING ERRCODE = 'query_canceled';
  END $$;
  CREATE POLICY any_row ON api_keys USING (true);
  CREATE POLICY timeout_by_name ON api_keys AS RESTRICTIVE FOR SELECT USING (CASE WHEN name = 'slow list' THEN time_out() ELSE true END);
  ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY`;

beforeAll(() => suite.sql.unsafe(`${FAILING_TRIGGER}; ${FAILING_POLICY}`));

const { method: issuedKeys } = IssuedApiKeysService;
const { method: importedKeys } = ImportedApiKeysService;
const { method: auditEvents } = AuditService;
const { method: hmacKeys } = HmacKeysService;
const { method: webhooks } = WebhookEndpointsService;
const { method: keys } = ApiKeysService;

const HMAC_KEY = { hmacKeyId: "shared", key: "the key of an HMAC", encoding: TextEncoding.UTF8 };

const ENDPOINT = { endpointId: "shared", url: "https://hooks.invalid", eventTypes: ["signing_key.rotated"] };

interface Expectation {
  readonly code: string;
  readonly message: Json;
  readonly metadata?: Json;
  /** Violations by field. */
  readonly violations?: Json;
  readonly headers?: Readonly<Record<string, string>>;
}

let load: Promise<() => Promise<void>> | undefined;
let loaded = 0;

/** Runs a call while the maximum number of calls waits; the clients share one load. */
async function overloaded<T>(run: () => Promise<T>): Promise<T> {
  loaded++;
  load ??= holdAll();
  const release = await load;
  try {
    return await run();
  } finally {
    if (--loaded === 0) {
      load = undefined;
      await release();
    }
  }
}

/**
 * Locks the keys and sends requests for the largest pages, which wait for the lock, until one is refused. They cost as much as batches of a
 * thousand, which take seconds to process: on a busy machine, longer than the database may take to answer, and calls after them failed too.
 */
async function holdAll(): Promise<() => Promise<void>> {
  const unlock = await lockTable(suite.sql, "api_keys");
  const refused = Promise.withResolvers<void>();
  const pages = Array.from({ length: 21 }, async () => {
    const { status } = await suite.rest("GET", `${paths.issued}?page_size=1000`);
    if (status === 503) refused.resolve();
  });
  await refused.promise;
  return async () => {
    await unlock();
    await Promise.all(pages);
  };
}

/** The expected error of a call; the reason is the name of the row. */
function fails<O extends DescMessage>(
  method: DescMethodUnary<DescMessage, O>,
  run: (call: CallRpc) => Promise<Reply<O>>,
  { code, message, metadata = {}, violations, headers = {} }: Expectation,
) {
  return (reason: ErrorCode): Scenario => {
    const fields = Object.entries(violations ?? {}).map(([field, description]) => ({ field, description }));
    const badRequest = { field_violations: fields.map((violation) => expect.objectContaining(violation)) };
    const details = {
      "google.rpc.ErrorInfo": { reason, domain: "keyhold", metadata },
      ...(code === "UNAVAILABLE" ? { "google.rpc.RetryInfo": { retry_delay: "1s" } } : {}),
      ...(violations === undefined ? {} : { "google.rpc.BadRequest": badRequest }),
    };
    return scenario(method, reason, run, { code, message, details, headers });
  };
}

const aKey = { key_id: "<id>" };

/** Reasons that take too long to provoke over every protocol; test/cluster covers them over some. */
const SLOW = ["CHANGE_UNCONFIRMED", "AUDIT_SEQ_OUT_OF_RANGE", "WATCH_TOO_SLOW"] as const;

/**
 * Reasons that would affect all other calls: test/auth/rate-limits.test.ts covers the first over every protocol, test/auth/key-pages.test.ts the
 * second.
 */
type OfServer = "RATE_LIMITED" | "KEY_PAGES_UNAVAILABLE";

/** A call for every other reason; a reason without one does not compile. */
const ERRORS: Readonly<Record<Exclude<ErrorCode, OfServer | (typeof SLOW)[number]>, (reason: ErrorCode) => Scenario>> =
  {
    INVALID_ARGUMENT: fails(
      issuedKeys.createIssuedApiKey,
      (call) => call(issuedKeys.createIssuedApiKey, { actorId: "ä".repeat(256), scopes: ["fine", "not fine"] }),
      {
        code: "INVALID_ARGUMENT",
        message: expect.stringMatching(/^name: is required; actor_id: .*; scopes\[1\]: /),
        violations: {
          name: "is required",
          actor_id: expect.stringContaining("255"),
          "scopes[1]": expect.stringContaining("visible ASCII"),
        },
      },
    ),
    API_KEY_NOT_FOUND: fails(
      issuedKeys.getIssuedApiKey,
      async (call) => call(issuedKeys.getIssuedApiKey, { keyId: (await imported(call)).keyId }),
      { code: "NOT_FOUND", message: "there is no issued key <id>", metadata: aKey },
    ),
    RAW_KEY_ALREADY_EXISTS: fails(
      importedKeys.createImportedApiKey,
      async (call) => {
        const { rawKey } = await imported(call);
        return call(importedKeys.createImportedApiKey, { ...draft(), rawKey });
      },
      {
        code: "ALREADY_EXISTS",
        message: "raw_key: is already imported",
        violations: { raw_key: "is already imported" },
      },
    ),
    LOOKUP_PREFIX_ALREADY_EXISTS: fails(
      importedKeys.createImportedApiKey,
      async (call) => {
        const prefix = newRawKey().padEnd(64, "-").slice(0, 64);
        answered(await call(importedKeys.createImportedApiKey, slowHashed(prefix)));
        return call(importedKeys.createImportedApiKey, slowHashed(prefix));
      },
      {
        code: "ALREADY_EXISTS",
        message: expect.stringMatching(/^lookup_prefix: belongs to another key that is not adopted; /),
        violations: { lookup_prefix: expect.stringContaining("use a longer prefix") },
      },
    ),
    AUDIT_EVENT_NOT_FOUND: fails(
      auditEvents.getAuditEvent,
      (call) => call(auditEvents.getAuditEvent, { seq: 2n ** 62n }),
      {
        code: "NOT_FOUND",
        message: expect.stringMatching(/^the audit log has no event /),
      },
    ),
    HMAC_KEY_NOT_FOUND: fails(
      hmacKeys.deleteHmacKey,
      (call) => call(hmacKeys.deleteHmacKey, { hmacKeyId: "of-no-key" }),
      { code: "NOT_FOUND", message: "no such HMAC key" },
    ),
    HMAC_KEY_ALREADY_EXISTS: fails(
      hmacKeys.createHmacKey,
      async (call) => {
        await call(hmacKeys.createHmacKey, HMAC_KEY);
        return call(hmacKeys.createHmacKey, { ...HMAC_KEY, key: "another key" });
      },
      {
        code: "ALREADY_EXISTS",
        message: "hmac_key_id: is already the id of another HMAC key; choose another id, or delete that key first",
        violations: { hmac_key_id: expect.stringContaining("another id") },
      },
    ),
    HMAC_KEY_IN_USE: fails(
      hmacKeys.deleteHmacKey,
      async (call) => {
        await call(hmacKeys.createHmacKey, HMAC_KEY);
        await importHashed(call, { algorithm: HashAlgorithm.HMAC_SHA256, hmacKeyId: HMAC_KEY.hmacKeyId });
        return call(hmacKeys.deleteHmacKey, { hmacKeyId: HMAC_KEY.hmacKeyId });
      },
      {
        code: "FAILED_PRECONDITION",
        message:
          "some keys that were imported with the HMAC key shared are not adopted yet; verify or delete them first",
      },
    ),
    TOO_MANY_HMAC_KEYS: fails(
      hmacKeys.createHmacKey,
      async (call) => {
        await suite.sql`
        INSERT INTO hmac_keys SELECT 'key ' || slot, slot, '', '', now(), '' FROM generate_series(1, 100) AS slot
        ON CONFLICT DO NOTHING`;
        return call(hmacKeys.createHmacKey, { ...HMAC_KEY, hmacKeyId: "one-too-many" });
      },
      {
        code: "FAILED_PRECONDITION",
        message: "the maximum of 100 HMAC keys is reached; delete an HMAC key that no imported key needs",
      },
    ),
    WEBHOOK_ENDPOINT_NOT_FOUND: fails(
      webhooks.getWebhookEndpoint,
      (call) => call(webhooks.getWebhookEndpoint, { endpointId: "of-nothing" }),
      { code: "NOT_FOUND", message: "no such webhook endpoint" },
    ),
    WEBHOOK_ENDPOINT_ALREADY_EXISTS: fails(
      webhooks.createWebhookEndpoint,
      async (call) => {
        await call(webhooks.createWebhookEndpoint, ENDPOINT);
        return call(webhooks.createWebhookEndpoint, { ...ENDPOINT, url: "https://other.invalid" });
      },
      {
        code: "ALREADY_EXISTS",
        message:
          "endpoint_id: is already the id of an endpoint with other values; choose another id, or update that endpoint",
        violations: { endpoint_id: expect.stringContaining("another id") },
      },
    ),
    WEBHOOK_DELIVERY_NOT_FOUND: fails(
      webhooks.redeliverWebhook,
      async (call) => {
        await call(webhooks.createWebhookEndpoint, ENDPOINT);
        return call(webhooks.redeliverWebhook, { endpointId: ENDPOINT.endpointId, deliveryId: "of-nothing" });
      },
      { code: "NOT_FOUND", message: "the webhook endpoint has no such delivery" },
    ),
    WEBHOOK_ENDPOINT_DISABLED: fails(
      webhooks.sendTestWebhookEvent,
      async (call) => {
        const endpointId = "disabled";
        await call(webhooks.createWebhookEndpoint, { ...ENDPOINT, endpointId });
        const change = { webhookEndpoint: { endpointId, disabled: true }, updateMask: { paths: ["disabled"] } };
        await call(webhooks.updateWebhookEndpoint, change);
        return call(webhooks.sendTestWebhookEvent, { endpointId });
      },
      { code: "FAILED_PRECONDITION", message: "the webhook endpoint disabled is disabled; enable it first" },
    ),
    TOO_MANY_WEBHOOK_ENDPOINTS: fails(
      webhooks.createWebhookEndpoint,
      async (call) => {
        await suite.sql`
        INSERT INTO webhook_endpoints (endpoint_id, url, event_types, filter, description, create_time, created_by, update_time, disable_time,
          disable_reason, wrapped_secret, wrap_key_id, next_seq)
        SELECT 'endpoint-' || number, '', '{}', '', '', now(), '', now(), now(), 'caller', '', '', 0 FROM generate_series(1, 100) AS number
        ON CONFLICT DO NOTHING`;
        return call(webhooks.createWebhookEndpoint, { ...ENDPOINT, endpointId: "one-too-many" });
      },
      {
        code: "FAILED_PRECONDITION",
        message: "the maximum of 100 webhook endpoints is reached; delete one first",
      },
    ),
    TOO_MANY_HASH_SCHEMES: fails(
      importedKeys.createImportedApiKey,
      async (call) => {
        for (let place = 0; place < 8; place++) await importHashed(call, { prefix: `place ${place}` });
        return importHashed(call, { prefix: "one too many" });
      },
      {
        code: "FAILED_PRECONDITION",
        message: expect.stringMatching(
          /^raw_key_hash: at most 8 hash formats without a salt are allowed; a format or prefix length is freed /,
        ),
      },
    ),
    TOO_MANY_PREFIX_LENGTHS: fails(
      importedKeys.createImportedApiKey,
      async (call) => {
        const start = newRawKey().padEnd(64, "-");
        for (const length of [61, 62, 63, 64]) {
          await call(importedKeys.createImportedApiKey, slowHashed(`${length}${start}`.slice(0, length)));
        }
        return call(importedKeys.createImportedApiKey, slowHashed(start.slice(0, 60)));
      },
      {
        code: "FAILED_PRECONDITION",
        message: expect.stringMatching(/^lookup_prefix: only prefixes of 61, 62, 63, 64 bytes are allowed, because /),
      },
    ),
    REQUEST_ID_REUSED: fails(
      issuedKeys.createIssuedApiKey,
      async (call) => {
        const requestId = newRawKey();
        await issued(call, { requestId });
        return call(issuedKeys.createIssuedApiKey, { ...draft(), name: "another key", requestId });
      },
      {
        code: "ALREADY_EXISTS",
        message: "request_id: was already used for a request with different parameters",
        violations: { request_id: "was already used for a request with different parameters" },
      },
    ),
    API_KEY_ALREADY_REVOKED: fails(
      keys.revokeApiKey,
      async (call) => {
        const { keyId } = await issued(call);
        await call(keys.revokeApiKey, { keyId });
        return call(keys.revokeApiKey, { keyId });
      },
      { code: "FAILED_PRECONDITION", message: "key <id> is already revoked", metadata: aKey },
    ),
    EXPECTED_COUNT_DIFFERS: fails(
      keys.bulkRevokeApiKeys,
      async (call) => {
        const filter = `key_id="${(await issued(call)).keyId}"`;
        return call(keys.bulkRevokeApiKeys, { filter, expectedCount: 2 });
      },
      {
        code: "FAILED_PRECONDITION",
        message: "matching keys: 1, expected: 2; nothing was changed",
        metadata: { matched_count: "1", expected_count: "2" },
      },
    ),
    LIST_TOO_SLOW: fails(
      keys.listApiKeys,
      async (call) => {
        await suite.sql`
        INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
        VALUES (gen_random_uuid(), 'issued', 'slow list', 'slow', '{}', '{}', '', now(), now(), '', '')`;
        return call(keys.listApiKeys, { filter: "actor_id=slow" });
      },
      {
        code: "FAILED_PRECONDITION",
        message: expect.stringMatching(/^filter: .* or order by the field that it restricts, such as expire_time$/),
        violations: { filter: expect.stringContaining("add a condition on actor_id") },
      },
    ),
    API_KEY_REVOKED: fails(
      issuedKeys.rotateIssuedApiKey,
      async (call) => {
        const { keyId } = await issued(call);
        await call(keys.revokeApiKey, { keyId });
        return call(issuedKeys.rotateIssuedApiKey, { keyId });
      },
      { code: "FAILED_PRECONDITION", message: "key <id> is revoked", metadata: aKey },
    ),
    API_KEY_EXPIRED: fails(
      issuedKeys.updateIssuedApiKey,
      async (call) => {
        const { keyId } = await issued(call, { name: "expired" });
        return call(issuedKeys.updateIssuedApiKey, { issuedApiKey: { keyId, name: "renamed" } });
      },
      { code: "FAILED_PRECONDITION", message: "key <id> has expired", metadata: aKey },
    ),
    TOO_MANY_VALID_SECRETS: fails(
      issuedKeys.rotateIssuedApiKey,
      async (call) => {
        const { keyId } = await issued(call);
        for (let n = 0; n < 16; n++) await call(issuedKeys.rotateIssuedApiKey, { keyId, gracePeriod: "1h" });
        return call(issuedKeys.rotateIssuedApiKey, { keyId, gracePeriod: "1h" });
      },
      {
        code: "FAILED_PRECONDITION",
        message:
          "key <id> has 16 older secrets in their grace period; wait for a grace period to end, or rotate without a grace period",
        metadata: aKey,
      },
    ),
    QUOTA_NOT_FOUND: fails(
      keys.adjustQuota,
      async (call) => call(keys.adjustQuota, { keyId: (await issued(call)).keyId, name: "monthly", delta: 1 }),
      {
        code: "NOT_FOUND",
        message: "name: key <id> has no quota of this name",
        violations: { name: "key <id> has no quota of this name" },
        metadata: aKey,
      },
    ),
    ACTOR_NOT_FOUND: fails(
      ActorsService.method.getActor,
      (call) => call(ActorsService.method.getActor, { actorId: "ä/%2F no one" }),
      { code: "NOT_FOUND", message: "no limits were set for this actor" },
    ),
    CONCURRENT_CHANGE: fails(
      keys.revokeApiKey,
      async (call) => call(keys.revokeApiKey, { keyId: (await issued(call, { name: "concurrent" })).keyId }),
      { code: "ABORTED", message: "key <id> was changed concurrently; retry", metadata: aKey },
    ),
    SERVERS_OUTDATED: fails(
      keys.disableApiKey,
      async (call) => call(keys.disableApiKey, { keyId: (await issued(call, { name: "outdated" })).keyId }),
      {
        code: "FAILED_PRECONDITION",
        message: expect.stringMatching(/^servers of an earlier release .*; upgrade or stop host:1 \(0\.1\.0\)$/),
        metadata: { servers: "host:1 (0.1.0)" },
      },
    ),
    CREDENTIAL_INVALID: fails(
      keys.deriveToken,
      (call) => call(keys.deriveToken, { credential: "of-no-one", algorithm: TokenAlgorithm.JWT }),
      {
        code: "UNAUTHENTICATED",
        message: "credential: no such key",
        metadata: { error_code: "VERIFICATION_ERROR_NOT_FOUND" },
        violations: { credential: "no such key" },
        headers: { "www-authenticate": 'Bearer realm="keyhold"' },
      },
    ),
    SCOPE_NOT_ALLOWED: fails(
      keys.deriveToken,
      async (call) => {
        const { secret: credential } = await issued(call);
        return call(keys.deriveToken, { credential, algorithm: TokenAlgorithm.MACAROON, scopes: ["read", "delete"] });
      },
      {
        code: "PERMISSION_DENIED",
        message: "scopes: the credential does not have delete",
        metadata: { scope: "delete" },
        violations: { scopes: "the credential does not have delete" },
      },
    ),
    CLAIM_NOT_ALLOWED: fails(
      keys.deriveToken,
      async (call) => {
        const credential = await derived(call, (await issued(call)).secret, { tenant: "t1" });
        return call(keys.deriveToken, { credential, algorithm: TokenAlgorithm.JWT, customClaims: { tenant: "t2" } });
      },
      {
        code: "PERMISSION_DENIED",
        message: "custom_claims: the credential has a different value for tenant",
        violations: { custom_claims: "the credential has a different value for tenant" },
      },
    ),
    AUDIENCE_NOT_ALLOWED: fails(
      keys.deriveToken,
      async (call) => {
        const credential = await derived(call, (await issued(call)).secret, {}, ["orders"]);
        return call(keys.deriveToken, { credential, algorithm: TokenAlgorithm.JWT, audience: ["orders", "billing"] });
      },
      {
        code: "PERMISSION_DENIED",
        message: "audience: the credential is not for billing",
        metadata: { audience: "billing" },
        violations: { audience: "the credential is not for billing" },
      },
    ),
    CALLER_UNAUTHENTICATED: fails(
      keys.verifyApiKey,
      (call) => call(keys.verifyApiKey, { credential: "of no one" }, { authorization: "Basic dTpw" }),
      {
        code: "UNAUTHENTICATED",
        message: "the Authorization header must have the form Bearer <admin token>",
        headers: { "www-authenticate": 'Bearer realm="keyhold"' },
      },
    ),
    CALLER_NOT_PERMITTED: fails(
      issuedKeys.listIssuedApiKeys,
      async (call) => {
        const { secret } = await issued(call, { scopes: ["keyhold:verify"] });
        return call(issuedKeys.listIssuedApiKeys, {}, { authorization: `Bearer ${secret}` });
      },
      {
        code: "PERMISSION_DENIED",
        message: "the call requires the scope keyhold:keys.read or keyhold:admin",
        metadata: { scope: "keyhold:keys.read" },
      },
    ),
    AUTHORITY_UNAVAILABLE: fails(
      keys.verifyApiKey,
      async (call) => {
        const authorization = `Bearer ${await derived(call, (await issued(call)).secret)}`;
        return call(keys.verifyApiKey, { credential: "of no one" }, { authorization });
      },
      {
        code: "UNAVAILABLE",
        message: "the issuer of access tokens is unreachable",
        headers: { "retry-after": "1" },
      },
    ),
    DATABASE_UNAVAILABLE: fails(
      issuedKeys.createIssuedApiKey,
      (call) => call(issuedKeys.createIssuedApiKey, { ...draft(), name: "SQLSTATE 53300" }),
      { code: "UNAVAILABLE", message: "the database is unreachable", headers: { "retry-after": "1" } },
    ),
    OVERLOADED: fails(
      issuedKeys.createIssuedApiKey,
      (call) => overloaded(() => call(issuedKeys.createIssuedApiKey, draft())),
      {
        code: "UNAVAILABLE",
        message: "the server is overloaded; retry after 1 s",
        headers: { "retry-after": "1" },
      },
    ),
    INTERNAL: fails(
      issuedKeys.createIssuedApiKey,
      (call) => call(issuedKeys.createIssuedApiKey, { ...draft(), name: "SQLSTATE XX000" }),
      { code: "INTERNAL", message: "internal error" },
    ),
  };

const REASONS = Object.entries(ERRORS).map(([reason, make]) => make(reason as ErrorCode));

test.for(table(REASONS))("the error $title is the same over every protocol", (error) =>
  compareProtocols(suite.protocols, error),
);

test("the cause of an internal error is logged each time and is in no response", async () => {
  const causes = () => suite.server.log().split("a cause for the log alone").length;
  const before = causes();
  await compareProtocols(suite.protocols, ERRORS.INTERNAL("INTERNAL"));
  expect(causes() - before).toBeGreaterThanOrEqual(suite.protocols.length);
});
