import { randomBytes, randomUUID } from "node:crypto";
import type { DescMessage, DescMethod, DescMethodUnary, DescService, MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService, TokenAlgorithm, VerificationError } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
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
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issueSecret } from "../../src/credential/issued-secret.ts";
import type { AdminScope } from "../../src/domain/admin-scopes.ts";
import { KEY_PAGE_PERMISSIONS, type KeyPagePermission as Permission } from "../../src/domain/key-page.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { keyPageAuthorization } from "../../src/keys/key-page.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { importKey, newRawKey, table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { callAsPage, openKeyPage } from "../support/key-pages.ts";
import { type CallRpc, messageJson, type Protocol, type Reply } from "../support/protocols/call.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { hasPath, restProtocol } from "../support/protocols/rest.ts";
import { issue, paths } from "../support/rest.ts";
import { storedKeys } from "../support/stored-keys.ts";

const suite = useGuardedService();
const protocols = new Map<string, Protocol>();
beforeAll(() => {
  protocols.set("REST", restProtocol(suite.server.url));
  protocols.set("gRPC", grpcProtocol("gRPC", suite.server.address));
});
afterAll(() => {
  for (const protocol of protocols.values()) protocol.close();
});

/** Keys for a call, and their actor. */
interface Target {
  readonly actorId: string;
  readonly issued: { readonly keyId: string; readonly secret: string };
  readonly imported: { readonly keyId: string; readonly rawKey: string };
}

interface Row {
  readonly method: DescMethodUnary;
  /** The required scope; null: the call needs no credential. */
  readonly scope: AdminScope | "any" | null;
  /** A call that succeeds when the caller is authorized. */
  run(call: CallRpc, target: Target, headers?: Record<string, string>): Promise<Reply>;
}

function row<I extends DescMessage>(
  method: DescMethodUnary<I>,
  scope: Row["scope"],
  request: (target: Target) => MessageInitShape<I>,
): Row {
  return { method, scope, run: (call, target, headers) => call(method, request(target), headers) };
}

const { method: issued } = IssuedApiKeysService;
const { method: imported } = ImportedApiKeysService;
const { method: hmacKeys } = HmacKeysService;
const { method: keys } = ApiKeysService;
const { method: audit } = AuditService;
const { method: usage } = UsageService;
const { method: actors } = ActorsService;
const { method: webhooks } = WebhookEndpointsService;
const HMAC_KEY = { hmacKeyId: "h", key: "the key of an HMAC", encoding: TextEncoding.UTF8 };
const draft = ({ actorId }: Target) => ({ name: "n", actorId });
const ofActor = ({ actorId }: Target) => ({ pageSize: 1, filter: `actor_id="${actorId}"` });

/** The last call on an actor that has limits. */
let lastOfActors: Promise<unknown> = Promise.resolve();

/** A call on an actor that has limits, after the others of the kind: one of them deletes it. */
function ofLimitedActor<I extends DescMessage>(
  method: DescMethodUnary<I>,
  scope: AdminScope,
  request: (target: Target) => MessageInitShape<I>,
): Row {
  const runNow: Row["run"] = async (call, target, headers) => {
    const limit = { name: "requests", quota: 1_000_000, window: "1s" };
    const quota = { name: "monthly", limit: 1_000_000, period: "QUOTA_PERIOD_MONTH" };
    const update = { actor: { rate_limits: [limit], quotas: [quota] }, update_mask: "rate_limits,quotas" };
    await suite.rest("PATCH", `${paths.actors}/${target.actorId}`, update);
    return call(method, request(target), headers);
  };
  const run: Row["run"] = (...args) => {
    const reply = lastOfActors.then(() => runNow(...args));
    lastOfActors = reply.catch(() => undefined);
    return reply;
  };
  return { method, scope, run };
}

/** A call on a webhook endpoint, to which nothing can be sent. `request` gets its id, and that of a delivery. */
function ofEndpoint<I extends DescMessage>(
  method: DescMethodUnary<I>,
  request: (endpointId: string, deliveryId: string) => MessageInitShape<I>,
): Row {
  const run: Row["run"] = async (call, _, headers) => {
    const endpoint = { endpoint_id: randomUUID(), url: "https://hooks.invalid", event_types: ["signing_key.rotated"] };
    const path = `${paths.webhookEndpoints}/${endpoint.endpoint_id}`;
    await suite.rest("POST", paths.webhookEndpoints, endpoint);
    const { body } = await suite.rest("POST", `${path}:sendTestEvent`, {});
    const reply = await call(method, request(endpoint.endpoint_id, body.delivery_id), headers);
    await suite.rest("DELETE", path);
    return reply;
  };
  return { method, scope: "keyhold:webhooks", run };
}

/** The table of docs/endpoints.md, written by hand. */
const ROWS: readonly Row[] = [
  row(issued.createIssuedApiKey, "keyhold:keys.issue", draft),
  row(issued.getIssuedApiKey, "keyhold:keys.read", (target) => ({ keyId: target.issued.keyId })),
  row(issued.listIssuedApiKeys, "keyhold:keys.read", ofActor),
  row(issued.updateIssuedApiKey, "keyhold:keys.update", (target) => ({
    issuedApiKey: { keyId: target.issued.keyId, name: "other" },
  })),
  row(issued.rotateIssuedApiKey, "keyhold:keys.rotate", (target) => ({ keyId: target.issued.keyId })),
  row(issued.endGracePeriod, "keyhold:keys.rotate", (target) => ({ keyId: target.issued.keyId })),
  row(imported.createImportedApiKey, "keyhold:keys.import", (target) => ({ ...draft(target), rawKey: newRawKey() })),
  row(imported.batchCreateImportedApiKeys, "keyhold:keys.import", (target) => ({
    requests: [{ ...draft(target), rawKey: newRawKey() }],
  })),
  row(imported.getImportedApiKey, "keyhold:keys.read", (target) => ({ keyId: target.imported.keyId })),
  row(imported.listImportedApiKeys, "keyhold:keys.read", ofActor),
  row(imported.updateImportedApiKey, "keyhold:keys.update", (target) => ({
    importedApiKey: { keyId: target.imported.keyId, name: "other" },
  })),
  row(imported.deleteImportedApiKey, "keyhold:keys.delete", (target) => ({ keyId: target.imported.keyId })),
  row(hmacKeys.createHmacKey, "keyhold:keys.import", () => HMAC_KEY),
  row(hmacKeys.listHmacKeys, "keyhold:keys.read", () => ({})),
  {
    method: hmacKeys.deleteHmacKey,
    scope: "keyhold:keys.import",
    run: async (call, _, headers) => {
      const hmacKeyId = randomUUID();
      await suite.rest("POST", paths.hmacKeys, {
        ...{ hmac_key_id: hmacKeyId, key: HMAC_KEY.key, encoding: "TEXT_ENCODING_UTF8" },
      });
      const reply = await call(hmacKeys.deleteHmacKey, { hmacKeyId }, headers);
      await suite.rest("DELETE", `${paths.hmacKeys}/${hmacKeyId}`);
      return reply;
    },
  },
  row(keys.getApiKey, "keyhold:keys.read", (target) => ({ keyId: target.issued.keyId })),
  row(keys.listApiKeys, "keyhold:keys.read", ofActor),
  row(keys.deriveToken, "keyhold:derive", (target) => ({
    credential: target.issued.secret,
    algorithm: TokenAlgorithm.JWT,
  })),
  row(keys.verifyApiKey, "keyhold:verify", (target) => ({ credential: target.issued.secret })),
  row(keys.batchVerifyApiKeys, "keyhold:verify", (target) => ({ requests: [{ credential: target.imported.rawKey }] })),
  // A stream with one request is the same on the wire as a unary call.
  row(keys.streamVerify as unknown as DescMethodUnary<typeof keys.streamVerify.input>, "keyhold:verify", (target) => ({
    ...{ id: 1, request: { credential: target.issued.secret } },
  })),
  row(keys.revokeApiKey, "keyhold:keys.revoke", (target) => ({ keyId: target.imported.keyId })),
  row(keys.disableApiKey, "keyhold:keys.disable", (target) => ({ keyId: target.issued.keyId })),
  row(keys.adjustQuota, "keyhold:keys.update", (target) => ({
    keyId: target.issued.keyId,
    name: "monthly",
    delta: 1,
  })),
  row(keys.enableApiKey, "keyhold:keys.disable", (target) => ({ keyId: target.issued.keyId })),
  row(keys.explainApiKey, "keyhold:keys.read", (target) => ({ keyId: target.issued.keyId })),
  row(keys.bulkRevokeApiKeys, "keyhold:keys.revoke", (target) => ({ filter: `key_id="${target.issued.keyId}"` })),
  row(keys.bulkDisableApiKeys, "keyhold:keys.disable", (target) => ({ filter: `key_id="${target.issued.keyId}"` })),
  row(audit.listAuditEvents, "keyhold:audit", () => ({ pageSize: 1 })),
  row(audit.getAuditEvent, "keyhold:audit", () => ({ seq: 0n })),
  row(audit.getAuditCheckpoint, "keyhold:audit", () => ({})),
  row(audit.getAuditProof, "keyhold:audit", () => ({ seq: 0n })),
  {
    method: audit.watchAuditEvents as unknown as DescMethodUnary,
    scope: "keyhold:audit",
    // A stream that fails is the same on the wire as a unary call. This one fails for an authorized caller, too.
    run: async (call, _, headers) => {
      const method = audit.watchAuditEvents as unknown as DescMethodUnary<typeof audit.watchAuditEvents.input>;
      const reply = await call(method, { startSeq: 2n ** 52n }, headers);
      return !reply.ok && reply.code === "OUT_OF_RANGE"
        ? { ok: true, message: {} as never, headers: reply.headers }
        : reply;
    },
  },
  row(usage.queryUsage, "keyhold:keys.read", (target) => ({ keyId: target.issued.keyId })),
  row(usage.getKeyUsage, "keyhold:keys.read", (target) => ({ keyId: target.issued.keyId })),
  ofLimitedActor(actors.getActor, "keyhold:keys.read", ({ actorId }) => ({ actorId })),
  row(actors.listActors, "keyhold:keys.read", () => ({})),
  row(actors.updateActor, "keyhold:keys.update", ({ actorId }) => ({
    actor: { actorId, rateLimits: [] },
    updateMask: { paths: ["rate_limits"] },
  })),
  ofLimitedActor(actors.adjustActorQuota, "keyhold:keys.update", ({ actorId }) => ({
    ...{ actorId, name: "monthly", delta: 1 },
  })),
  ofLimitedActor(actors.deleteActor, "keyhold:keys.update", ({ actorId }) => ({ actorId })),
  ofEndpoint(webhooks.createWebhookEndpoint, (endpointId) => ({
    ...{ endpointId, url: "https://hooks.invalid", eventTypes: ["signing_key.rotated"] },
  })),
  ofEndpoint(webhooks.getWebhookEndpoint, (endpointId) => ({ endpointId })),
  row(webhooks.listWebhookEndpoints, "keyhold:webhooks", () => ({})),
  ofEndpoint(webhooks.updateWebhookEndpoint, (endpointId) => ({ webhookEndpoint: { endpointId, description: "d" } })),
  ofEndpoint(webhooks.deleteWebhookEndpoint, (endpointId) => ({ endpointId })),
  ofEndpoint(webhooks.rotateWebhookEndpointSecret, (endpointId) => ({ endpointId })),
  ofEndpoint(webhooks.sendTestWebhookEvent, (endpointId) => ({ endpointId })),
  ofEndpoint(webhooks.listWebhookDeliveries, (endpointId) => ({ endpointId })),
  ofEndpoint(webhooks.redeliverWebhook, (endpointId, deliveryId) => ({ endpointId, deliveryId })),
  ofEndpoint(webhooks.replayWebhookEvents, (endpointId) => ({ endpointId, seq: 0n })),
  row(CallersService.method.whoAmI, "any", () => ({})),
  row(KeyPagesService.method.createKeyPageSession, "keyhold:key-pages", ({ actorId }) => ({ actorId })),
  row(SelfServiceService.method.selfRevokeApiKey, null, (target) => ({ credential: target.issued.secret })),
  row(DerivedKeysService.method.getJwks, null, () => ({})),
  row(Health.method.check, null, () => ({})),
];

const errorInfo = (reason: string, metadata = {}) => ({
  details: { "google.rpc.ErrorInfo": { reason, domain: "keyhold", metadata } },
});
const NOT_FOUND = { ok: false, code: "NOT_FOUND", ...errorInfo("API_KEY_NOT_FOUND") };
const NO_SUCH_ACTOR = { ok: false, code: "NOT_FOUND", ...errorInfo("ACTOR_NOT_FOUND") };
const NOT_ITS_ACTOR = {
  ...{ ok: false, code: "PERMISSION_DENIED" },
  ...errorInfo("CALLER_NOT_PERMITTED", { field: "actor_id" }),
};
const NOT_PERMITTED = { ok: false, code: "PERMISSION_DENIED", ...errorInfo("CALLER_NOT_PERMITTED") };
const NOTHING = { ok: true, message: { nextPageToken: "" } };
const NO_MATCH = { ok: true, message: { matchedCount: 0, changedCount: 0, done: true } };
const NO_SUCH_KEY = { isValid: false, errorCode: VerificationError.NOT_FOUND, errorMessage: "no such key" };

/** Services whose resources have no actor. */
const UNDIVIDED: readonly DescService[] = [HmacKeysService, AuditService, WebhookEndpointsService];

/** What a restricted caller is answered about keys of other actors, and about keys that do not exist. */
const HIDDEN: Readonly<Record<string, object>> = {
  CreateIssuedApiKey: NOT_ITS_ACTOR,
  GetIssuedApiKey: NOT_FOUND,
  ListIssuedApiKeys: NOTHING,
  UpdateIssuedApiKey: NOT_FOUND,
  RotateIssuedApiKey: NOT_FOUND,
  EndGracePeriod: NOT_FOUND,
  CreateImportedApiKey: NOT_ITS_ACTOR,
  BatchCreateImportedApiKeys: NOT_PERMITTED,
  GetImportedApiKey: NOT_FOUND,
  ListImportedApiKeys: NOTHING,
  UpdateImportedApiKey: NOT_FOUND,
  DeleteImportedApiKey: NOT_FOUND,
  CreateHmacKey: NOT_PERMITTED,
  ListHmacKeys: NOT_PERMITTED,
  DeleteHmacKey: NOT_PERMITTED,
  GetApiKey: NOT_FOUND,
  ListApiKeys: NOTHING,
  DeriveToken: {
    ...{ ok: false, code: "UNAUTHENTICATED" },
    ...errorInfo("CREDENTIAL_INVALID", { error_code: "VERIFICATION_ERROR_NOT_FOUND" }),
  },
  VerifyApiKey: { ok: true, message: NO_SUCH_KEY },
  BatchVerifyApiKeys: { ok: true, message: { results: [NO_SUCH_KEY] } },
  StreamVerify: { ok: true, message: { id: 1, result: { case: "response", value: NO_SUCH_KEY } } },
  RevokeApiKey: NOT_FOUND,
  DisableApiKey: NOT_FOUND,
  EnableApiKey: NOT_FOUND,
  AdjustQuota: NOT_FOUND,
  ExplainApiKey: NOT_FOUND,
  BulkRevokeApiKeys: NO_MATCH,
  BulkDisableApiKeys: NO_MATCH,
  ListAuditEvents: NOT_PERMITTED,
  GetAuditEvent: NOT_PERMITTED,
  GetAuditCheckpoint: NOT_PERMITTED,
  GetAuditProof: NOT_PERMITTED,
  WatchAuditEvents: NOT_PERMITTED,
  QueryUsage: NOTHING,
  GetKeyUsage: NOT_FOUND,
  GetActor: NO_SUCH_ACTOR,
  ListActors: NOTHING,
  UpdateActor: { ...NOT_ITS_ACTOR, ...errorInfo("CALLER_NOT_PERMITTED", { field: "actor.actor_id" }) },
  AdjustActorQuota: { ok: false, code: "NOT_FOUND", ...errorInfo("QUOTA_NOT_FOUND") },
  DeleteActor: NO_SUCH_ACTOR,
  CreateWebhookEndpoint: NOT_PERMITTED,
  GetWebhookEndpoint: NOT_PERMITTED,
  ListWebhookEndpoints: NOT_PERMITTED,
  UpdateWebhookEndpoint: NOT_PERMITTED,
  DeleteWebhookEndpoint: NOT_PERMITTED,
  RotateWebhookEndpointSecret: NOT_PERMITTED,
  SendTestWebhookEvent: NOT_PERMITTED,
  ListWebhookDeliveries: NOT_PERMITTED,
  RedeliverWebhook: NOT_PERMITTED,
  ReplayWebhookEvents: NOT_PERMITTED,
  CreateKeyPageSession: NOT_ITS_ACTOR,
  WhoAmI: { ok: true, message: { actorRestricted: true, restrictedToActorIds: ["own"] } },
};

/** The parts of keys.write, written by hand. */
const PARTS: readonly AdminScope[] = [
  "keyhold:keys.issue",
  "keyhold:keys.import",
  "keyhold:keys.update",
  "keyhold:keys.rotate",
  "keyhold:keys.revoke",
  "keyhold:keys.disable",
  "keyhold:keys.delete",
];

const SCOPES: readonly AdminScope[] = [
  "keyhold:admin",
  "keyhold:keys.read",
  "keyhold:keys.write",
  ...PARTS,
  "keyhold:verify",
  "keyhold:derive",
  "keyhold:audit",
  "keyhold:webhooks",
  "keyhold:key-pages",
];

const CASES = ROWS.flatMap((one) =>
  (hasPath(one.method) ? ["REST", "gRPC"] : ["gRPC"]).map((protocol) => ({
    name: one.method.name,
    protocol,
    row: one,
  })),
);

async function newTarget(actorId = "own"): Promise<Target> {
  const [issued, imported] = await Promise.all([
    issue(suite.rest, { actor_id: actorId, quotas: [{ name: "monthly", limit: 9, period: "QUOTA_PERIOD_MONTH" }] }),
    importKey(suite.rest, { actor_id: actorId }),
  ]);
  return { actorId, issued, imported };
}

/** Returns a hash of the newest keys, which are those of the test: a hash of all takes longer than the calls. */
const newestKeys = () =>
  storedKeys(suite.sql, suite.sql`key_id IN (SELECT key_id FROM api_keys ORDER BY create_time DESC, key_id LIMIT 10)`);

function callOf(protocol: string): CallRpc {
  const found = protocols.get(protocol);
  if (found === undefined) throw new Error(`no ${protocol}`);
  return found.call;
}

const foreignRoot = { current: randomBytes(32), retired: [] };

/** No credential; a well-formed secret of another service; a malformed text. */
function badCredentials(): Record<string, string>[] {
  const foreign = issueSecret({
    prefix: parseSecretPrefix("kh"),
    keyId: randomUUID(),
    random: systemRandom,
    tagKeys: deriveKeyRing(foreignRoot, "secret-tag"),
  });
  return [{}, bearer(foreign), bearer(randomBytes(24).toString("hex"))];
}

test("every method has a row", () => {
  const methods = [...SERVICES.flatMap((service) => service.methods as readonly DescMethod[]), Health.method.check];
  expect(ROWS.map(({ method }) => String(method)).sort()).toEqual(methods.map(String).sort());
});

function sufficient({ scope }: Row): AdminScope[] {
  if (scope === null || scope === "any") return [...SCOPES];
  return PARTS.includes(scope) ? [scope, "keyhold:keys.write", "keyhold:admin"] : [scope, "keyhold:admin"];
}

const isPermitted = (row: Row, held: AdminScope) => sufficient(row).includes(held);

test("every method that needs a scope says what a restricted caller learns of other actors", () => {
  expect(Object.keys(HIDDEN).sort()).toEqual(
    ROWS.flatMap(({ method, scope }) => (scope === null ? [] : method.name)).sort(),
  );
});

describe.each(table(CASES.filter(({ row }) => row.scope === null)))("$name over $protocol", ({ protocol, row }) => {
  test("needs no credential and ignores any", async () => {
    for (const headers of [...badCredentials(), bearer(suite.token("keyhold:derive"))]) {
      expect(await row.run(callOf(protocol), await newTarget(), headers)).toMatchObject({ ok: true });
    }
  });
});

describe.each(table(CASES.filter(({ row }) => row.scope !== null)))("$name over $protocol", ({ protocol, row }) => {
  test("is rejected without a valid credential", async () => {
    const target = await newTarget();
    const before = await newestKeys();
    for (const headers of badCredentials()) {
      const reply = await row.run(callOf(protocol), target, headers);
      expect(reply).toMatchObject({
        ok: false,
        code: "UNAUTHENTICATED",
        details: { "google.rpc.ErrorInfo": { reason: "CALLER_UNAUTHENTICATED", domain: "keyhold" } },
      });
      expect(reply.headers.get("www-authenticate")).toMatch(/^Bearer realm="keyhold"/);
    }
    expect(await newestKeys()).toEqual(before);
  });

  test("is denied to a caller with another scope, and the error names the required one", async () => {
    const { scope } = row;
    const target = await newTarget();
    // The key of a customer is a valid credential. An OIDC access token may have any scope.
    const customer = await issue(suite.rest, { scopes: ["read", "keys.read", "KEYHOLD:admin", "keyhold"] });
    const others = SCOPES.filter((one) => !isPermitted(row, one)).map(suite.token);
    const before = await newestKeys();
    for (const token of [customer.secret, ...others]) {
      expect(await row.run(callOf(protocol), target, bearer(token))).toMatchObject({
        ok: false,
        code: "PERMISSION_DENIED",
        message:
          scope === "any"
            ? "the call requires at least one Keyhold scope, such as keyhold:keys.read or keyhold:verify"
            : `the call requires the scope ${sufficient(row).join(" or ")}`,
        ...errorInfo("CALLER_NOT_PERMITTED", scope === "any" ? {} : { scope }),
      });
    }
    expect(await newestKeys()).toEqual(before);
  });

  test.each(table(SCOPES.filter((held) => isPermitted(row, held))))("is allowed for a caller with %s", async (held) => {
    expect(await row.run(callOf(protocol), await newTarget(), bearer(suite.token(held)))).toMatchObject({ ok: true });
  });
});

describe("a caller that is restricted to an actor", () => {
  const tokens = new Map<AdminScope, string>();
  /** Of another actor; and deleted. */
  let [foreign, absent]: Target[] = [];
  beforeAll(async () => {
    [foreign, absent] = [await newTarget("foreign"), await newTarget("absent")];
    await suite.sql`DELETE FROM api_keys WHERE actor_id = 'absent'`;
    for (const scope of SCOPES) {
      const fields = { scopes: [scope], actor_id: "own", restricted_to_actor_ids: ["own"] };
      tokens.set(scope, (await issue(suite.rest, fields)).secret);
    }
  });
  const as = (scope: AdminScope) => bearer(tokens.get(scope) ?? "");
  const othersKeys = () => suite.sql`SELECT * FROM api_keys WHERE actor_id IN ('foreign', 'absent') ORDER BY key_id`;

  /** What a caller sees, without the actors that it has sent and without ids, which it has sent or are new. */
  function seen({ method }: Row, reply: Reply, { actorId }: Target): string {
    const { code, message, details } = reply.ok ? { code: "OK", message: "", details: {} } : reply;
    const answer = reply.ok ? messageJson(method.output, reply.message as never) : { code, message, details };
    return JSON.stringify(answer)
      .replaceAll(actorId, "…")
      .replaceAll(/[0-9a-f-]{36}/g, "…");
  }

  test.each(table(CASES.filter(({ row }) => row.scope !== null)))("$name over $protocol", async ({ protocol, row }) => {
    const [others, gone] = [foreign, absent] as [Target, Target];
    const call = callOf(protocol);
    const before = await othersKeys();
    const walk = async (held: AdminScope) => {
      if (!isPermitted(row, held)) {
        expect(await row.run(call, others, as(held))).toMatchObject({
          code: "PERMISSION_DENIED",
          ...errorInfo("CALLER_NOT_PERMITTED", { scope: row.scope }),
        });
        return;
      }
      const own = UNDIVIDED.includes(row.method.parent) ? NOT_PERMITTED : { ok: true };
      expect(await row.run(call, await newTarget(), as(held))).toMatchObject(own);
      const replies = [];
      for (const target of [others, gone]) {
        const reply = await row.run(call, target, as(held));
        expect(reply).toMatchObject(HIDDEN[row.method.name] ?? {});
        replies.push(seen(row, reply, target));
      }
      expect(replies[0]).toBe(replies[1]);
    };
    // Callers without restriction lack each of the others.
    const lacking = SCOPES.filter((held) => !isPermitted(row, held)).slice(0, 1);
    await Promise.all([...SCOPES.filter((held) => isPermitted(row, held)), ...lacking].map(walk));
    expect(await othersKeys()).toEqual(before);
  });

  describe("WhoAmI lists exactly the RPCs that are allowed", () => {
    /** The RPCs of the API whose row allows them with a scope. */
    const allowed = (held: AdminScope) =>
      ROWS.filter((row) => row.method.parent !== Health && isPermitted(row, held)).map(({ method }) => method);
    const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`;
    const isDenied = ({ parent, name }: DescMethod) => UNDIVIDED.includes(parent) && HIDDEN[name] === NOT_PERMITTED;

    test.each(table(SCOPES))("to a caller with %s", async (held) => {
      const { body } = await suite.as(suite.token(held))("GET", paths.caller);
      expect(body.permitted_rpcs).toEqual(allowed(held).map(nameOf).sort());
    });

    test.each(table(SCOPES))("to a restricted caller with %s", async (held) => {
      const { body } = await suite.as(tokens.get(held) ?? "")("GET", paths.caller);
      const expected = allowed(held).filter((method) => !isDenied(method));
      expect(body.permitted_rpcs).toEqual(expected.map(nameOf).sort());
    });

    test("to a caller with several scopes", async () => {
      const scopes: readonly AdminScope[] = ["keyhold:verify", "keyhold:audit"];
      const { secret } = await issue(suite.rest, { scopes });
      const { body } = await suite.as(secret)("GET", paths.caller);
      expect(body.permitted_rpcs).toEqual([...new Set(scopes.flatMap(allowed).map(nameOf))].sort());
    });
  });
});

describe("a session of the key page", () => {
  /** What a session must permit for an RPC, written by hand. Every other RPC is denied. */
  const NEEDED: Readonly<Record<string, Permission | "VIEW">> = {
    WhoAmI: "VIEW",
    ...{ GetApiKey: "VIEW", GetIssuedApiKey: "VIEW", GetImportedApiKey: "VIEW" },
    ...{ ListApiKeys: "VIEW", ListIssuedApiKeys: "VIEW", ListImportedApiKeys: "VIEW" },
    CreateIssuedApiKey: "CREATE",
    ...{ RotateIssuedApiKey: "ROTATE", EndGracePeriod: "ROTATE" },
    RevokeApiKey: "REVOKE",
    ...{ QueryUsage: "VIEW_USAGE", GetKeyUsage: "VIEW_USAGE" },
  };
  const GRANTS: Readonly<Record<string, readonly Permission[]>> = {
    nothing: [],
    ...Object.fromEntries(KEY_PAGE_PERMISSIONS.map((permission) => [permission, [permission]])),
    everything: KEY_PAGE_PERMISSIONS,
  };
  const sessions = new Map<string, string>();
  beforeAll(async () => {
    for (const [name, granted] of Object.entries(GRANTS)) {
      const permissions = granted.map((permission) => `KEY_PAGE_PERMISSION_${permission}`);
      sessions.set(name, await openKeyPage(suite.server.url, suite.rest, { permissions }));
    }
  });
  const sealed = (name: string) => sessions.get(name) ?? "";
  const allows = (name: string, { method }: Row) => {
    const needed = NEEDED[method.name];
    return needed === "VIEW" || (needed !== undefined && (GRANTS[name] ?? []).includes(needed));
  };

  test.each(table(CASES.filter(({ protocol, row }) => protocol === "gRPC" && row.scope !== null)))(
    "$name",
    async ({ protocol, row }) => {
      const [call, names] = [callOf(protocol), Object.keys(GRANTS)];
      const as = (name: string) => ({ authorization: keyPageAuthorization(sealed(name)) });
      const [target, others] = await Promise.all([newTarget(), newTarget("foreign")]);
      const before = await newestKeys();
      for (const name of names.filter((one) => !allows(one, row)))
        expect(await row.run(call, target, as(name))).toMatchObject({ ok: false, code: "PERMISSION_DENIED" });
      expect(await newestKeys()).toEqual(before);
      for (const name of names.filter((one) => allows(one, row))) {
        expect(await row.run(call, await newTarget(), as(name))).toMatchObject({ ok: true });
        expect(await row.run(call, others, as(name))).toMatchObject(hiddenFromOwner(row.method.name));
      }
    },
  );

  test("finds below /keys/api only the RPCs that a session may permit", async () => {
    const answer = (rpc: string) => callAsPage(suite.server.url, sealed("everything"), rpc);
    const { status, body } = await answer("NoService/No");
    expect(status).toBe(404);
    for (const { method } of ROWS.filter((one) => one.method.parent !== Health)) {
      const reply = await answer(`${method.parent.name}/${method.name}`);
      if (NEEDED[method.name] === undefined) expect(reply, method.name).toMatchObject({ status, body });
      else expect(reply.body, method.name).not.toEqual(body);
    }
  });

  test.each(table(Object.keys(GRANTS)))("that permits %s lists exactly the RPCs that are allowed", async (name) => {
    const { body } = await callAsPage(suite.server.url, sealed(name), "CallersService/WhoAmI");
    const allowed = ROWS.filter((one) => (one.scope === null ? one.method.parent !== Health : allows(name, one)));
    expect(body.permitted_rpcs).toEqual(
      allowed.map(({ method: { parent, name } }) => `${parent.typeName}/${name}`).sort(),
    );
    expect(body.key_page_session.permissions ?? []).toEqual(
      (GRANTS[name] ?? []).map((one) => `KEY_PAGE_PERMISSION_${one}`),
    );
  });

  test("has every permission of the API", () => {
    const names = Object.values(KeyPagePermission).filter((value) => typeof value === "string");
    expect(names).toEqual(["UNSPECIFIED", ...KEY_PAGE_PERMISSIONS]);
  });
});

/** What the owner of keys is answered about those of another actor. */
const hiddenFromOwner = (name: string) => (name === "WhoAmI" ? { ok: true } : (HIDDEN[name] ?? {}));
