import { randomUUID } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  BatchCreateImportedApiKeysRequestSchema,
  Code,
  type ConnectError,
  CreateIssuedApiKeyRequestSchema,
  createKeyholdClient,
  errorReason,
  type KeyholdClient,
  QuotaPeriod,
  RevocationReason,
  TextEncoding,
  TokenAlgorithm,
} from "../../src/client/index.ts";
import { importKey, newRawKey, table, useService } from "../support/conformance.ts";
import { issue } from "../support/rest.ts";
import { type FlakyProxy, type Outcome, startFlakyProxy } from "./flaky-proxy.ts";

const suite = useService();

let proxy: FlakyProxy;
let client: KeyholdClient;
beforeAll(async () => {
  proxy = await startFlakyProxy(suite.server);
  client = createKeyholdClient({ baseUrl: proxy.url, retry: { initialBackoffMs: 1 } });
});
afterAll(() => proxy.close());

const unavailable: Outcome = { reason: "DATABASE_UNAVAILABLE" };
const overloaded: Outcome = { reason: "OVERLOADED" };

const aKey = { name: "a", actorId: "b" };
const anEndpoint = (endpointId: string) => ({
  ...{ endpointId, url: "https://hooks.invalid", eventTypes: ["signing_key.rotated"] },
});
const anHmacKey = (hmacKeyId: string) => ({ hmacKeyId, key: "a key", encoding: TextEncoding.UTF8 });

interface Row {
  readonly name: string;
  /** Whether it is retried after a lost response. */
  readonly repeats: boolean;
  /** The error of the retry, if it is one. */
  readonly reason?: string;
  /** Prepares a unique call. */
  readonly call: () => Promise<() => Promise<unknown>>;
}

/** The calls of a service by their RPCs; `prepare` makes what each of them needs. */
function rows<T>(
  prepare: () => Promise<T>,
  calls: Readonly<Record<string, (made: T) => Promise<unknown>>>,
  { repeats = true, reason }: Partial<Row> = {},
): Row[] {
  return Object.entries(calls).map(([name, run]) => ({
    ...{ name, repeats, ...(reason !== undefined && { reason }) },
    call: async () => {
      const made = await prepare();
      return () => run(made);
    },
  }));
}

const nothing = async () => undefined;
const limitsOf = (actorId: string) => ({
  actor: { actorId, quotas: [{ name: "monthly", limit: 9, period: QuotaPeriod.MONTH }] },
  updateMask: { paths: ["quotas"] },
});
const anActor = async () => (await client.actors.updateActor(limitsOf(randomUUID()))).actorId;
const issued = () => issue(suite.rest, { quotas: [{ name: "monthly", limit: 9, period: "QUOTA_PERIOD_MONTH" }] });
const imported = () => importKey(suite.rest);
const endpoint = async () => {
  const { endpointId } = anEndpoint(randomUUID());
  await client.webhookEndpoints.createWebhookEndpoint(anEndpoint(endpointId));
  const { deliveryId } = await client.webhookEndpoints.sendTestWebhookEvent({ endpointId });
  return { endpointId, deliveryId };
};
const credential = "x";

/** All RPCs. */
const CALLS = table<Row>([
  ...rows(nothing, {
    verifyApiKey: () => client.apiKeys.verifyApiKey({ credential }),
    batchVerifyApiKeys: () => client.apiKeys.batchVerifyApiKeys({ requests: [{ credential }] }),
    listApiKeys: () => client.apiKeys.listApiKeys({}),
    explainApiKey: () => client.apiKeys.explainApiKey({ credential }),
    bulkRevokeApiKeys: () => client.apiKeys.bulkRevokeApiKeys({ filter: 'name="nothing"' }),
    bulkDisableApiKeys: () => client.apiKeys.bulkDisableApiKeys({ filter: 'name="nothing"' }),
    getJwks: () => client.derivedKeys.getJwks({}),
    listIssuedApiKeys: () => client.issuedApiKeys.listIssuedApiKeys({}),
    createIssuedApiKey: () => client.issuedApiKeys.createIssuedApiKey(aKey),
    listImportedApiKeys: () => client.importedApiKeys.listImportedApiKeys({}),
    createImportedApiKey: () => client.importedApiKeys.createImportedApiKey({ ...aKey, rawKey: newRawKey() }),
    batchCreateImportedApiKeys: () =>
      client.importedApiKeys.batchCreateImportedApiKeys({ requests: [{ ...aKey, rawKey: newRawKey() }] }),
    listHmacKeys: () => client.hmacKeys.listHmacKeys({}),
    listAuditEvents: () => client.audit.listAuditEvents({}),
    getAuditEvent: () => client.audit.getAuditEvent({ seq: 0n }),
    getAuditCheckpoint: () => client.audit.getAuditCheckpoint({}),
    getAuditProof: () => client.audit.getAuditProof({ seq: 0n }),
    queryUsage: () => client.usage.queryUsage({}),
    createWebhookEndpoint: () => client.webhookEndpoints.createWebhookEndpoint(anEndpoint(randomUUID())),
    listWebhookEndpoints: () => client.webhookEndpoints.listWebhookEndpoints({}),
    whoAmI: () => client.callers.whoAmI({}),
    createHmacKey: () => client.hmacKeys.createHmacKey(anHmacKey(randomUUID())),
  }),
  ...rows(anActor, {
    getActor: (actorId) => client.actors.getActor({ actorId }),
    listActors: () => client.actors.listActors({}),
    updateActor: (actorId) => client.actors.updateActor(limitsOf(actorId)),
  }),
  ...rows(anActor, { deleteActor: (actorId) => client.actors.deleteActor({ actorId }) }, { reason: "ACTOR_NOT_FOUND" }),
  ...rows(issued, {
    getIssuedApiKey: ({ keyId }) => client.issuedApiKeys.getIssuedApiKey({ keyId }),
    getKeyUsage: ({ keyId }) => client.usage.getKeyUsage({ keyId }),
    getApiKey: ({ keyId }) => client.apiKeys.getApiKey({ keyId }),
    updateIssuedApiKey: ({ keyId }) => client.issuedApiKeys.updateIssuedApiKey({ issuedApiKey: { keyId, name: "c" } }),
    disableApiKey: ({ keyId }) => client.apiKeys.disableApiKey({ keyId }),
    enableApiKey: ({ keyId }) => client.apiKeys.enableApiKey({ keyId }),
    endGracePeriod: ({ keyId }) => client.issuedApiKeys.endGracePeriod({ keyId }),
  }),
  ...rows(imported, {
    getImportedApiKey: ({ keyId }) => client.importedApiKeys.getImportedApiKey({ keyId }),
    updateImportedApiKey: ({ keyId }) =>
      client.importedApiKeys.updateImportedApiKey({ importedApiKey: { keyId, name: "c" } }),
  }),
  ...rows(
    issued,
    {
      rotateIssuedApiKey: ({ keyId }) => client.issuedApiKeys.rotateIssuedApiKey({ keyId }),
      deriveToken: ({ secret }) => client.apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT }),
      revokeApiKey: ({ keyId }) => client.apiKeys.revokeApiKey({ keyId }),
      selfRevokeApiKey: ({ secret }) =>
        client.selfService.selfRevokeApiKey({ credential: secret, reason: RevocationReason.SUPERSEDED }),
    },
    { repeats: false },
  ),
  ...rows(endpoint, {
    getWebhookEndpoint: ({ endpointId }) => client.webhookEndpoints.getWebhookEndpoint({ endpointId }),
    updateWebhookEndpoint: ({ endpointId }) =>
      client.webhookEndpoints.updateWebhookEndpoint({ webhookEndpoint: { endpointId, description: "c" } }),
    listWebhookDeliveries: ({ endpointId }) => client.webhookEndpoints.listWebhookDeliveries({ endpointId }),
    redeliverWebhook: (ids) => client.webhookEndpoints.redeliverWebhook(ids),
    replayWebhookEvents: ({ endpointId }) => client.webhookEndpoints.replayWebhookEvents({ endpointId, seq: 0n }),
  }),
  ...rows(
    endpoint,
    {
      rotateWebhookEndpointSecret: ({ endpointId }) =>
        client.webhookEndpoints.rotateWebhookEndpointSecret({ endpointId }),
      sendTestWebhookEvent: ({ endpointId }) => client.webhookEndpoints.sendTestWebhookEvent({ endpointId }),
    },
    { repeats: false },
  ),
  ...rows(
    endpoint,
    { deleteWebhookEndpoint: ({ endpointId }) => client.webhookEndpoints.deleteWebhookEndpoint({ endpointId }) },
    { reason: "WEBHOOK_ENDPOINT_NOT_FOUND" },
  ),
  ...rows(
    issued,
    { adjustQuota: ({ keyId }) => client.apiKeys.adjustQuota({ keyId, name: "monthly", delta: 1 }) },
    { repeats: false },
  ),
  ...rows(
    anActor,
    { adjustActorQuota: (actorId) => client.actors.adjustActorQuota({ actorId, name: "monthly", delta: 1 }) },
    { repeats: false },
  ),
  ...rows(
    nothing,
    { createKeyPageSession: () => client.keyPages.createKeyPageSession({ actorId: "one" }) },
    { repeats: false },
  ),
  ...rows(
    () => client.hmacKeys.createHmacKey(anHmacKey(randomUUID())),
    { deleteHmacKey: ({ hmacKeyId }) => client.hmacKeys.deleteHmacKey({ hmacKeyId }) },
    { reason: "HMAC_KEY_NOT_FOUND" },
  ),
  ...rows(
    imported,
    { deleteImportedApiKey: ({ keyId }) => client.importedApiKeys.deleteImportedApiKey({ keyId }) },
    { reason: "API_KEY_NOT_FOUND" },
  ),
]);

test("the table has every unary RPC", () => {
  const methods = Object.values(client)
    .flatMap((service) => Object.keys(service))
    .filter((name) => name !== "streamVerify" && name !== "watchAuditEvents");
  expect(CALLS.map(({ name }) => name).sort()).toEqual(methods.sort());
});

test.for(CALLS)("retries $name after a lost response: $repeats", async ({ repeats, reason, call }) => {
  const run = await call();
  proxy.next("lose the response");
  if (repeats) expect(await run().then(() => undefined, errorReason)).toBe(reason);
  else expect((await rejection(run())).code).toBe(Code.Unavailable);
  expect(proxy.sent.length).toBe(repeats ? 2 : 1);
});

test.for(CALLS)("retries $name if the server rejected it before execution", async ({ call }) => {
  const run = await call();
  proxy.next(overloaded, overloaded);
  await run();
  expect(proxy.sent.length).toBe(3);
});

test("a retry is idempotent: one key, its secret returned once", async () => {
  proxy.next("lose the response");
  const answer = await client.issuedApiKeys.createIssuedApiKey({ name: "once", actorId: "one" });
  const [first, second] = proxy.sent.map(({ body }) => fromBinary(CreateIssuedApiKeyRequestSchema, body).requestId);
  expect(first).toMatch(/^[0-9a-f-]{36}$/);
  expect(second).toBe(first);
  expect(answer.secret).toBeUndefined();
  const { issuedApiKeys } = await client.issuedApiKeys.listIssuedApiKeys({ filter: 'actor_id="one"' });
  expect(issuedApiKeys.map(({ keyId }) => keyId)).toEqual([answer.issuedApiKey?.keyId]);
});

test("each call and batch item gets a request_id; the caller's is kept", async () => {
  proxy.next();
  const item = { ...aKey, rawKey: newRawKey() };
  const request = { requests: [item, { ...item, rawKey: newRawKey(), requestId: "mine" }] };
  await client.importedApiKeys.batchCreateImportedApiKeys(request);
  await client.importedApiKeys.batchCreateImportedApiKeys(request).catch(() => {});
  const ids = proxy.sent.map(({ body }) =>
    fromBinary(BatchCreateImportedApiKeysRequestSchema, body).requests.map(({ requestId }) => requestId),
  );
  expect(ids.map(([, second]) => second)).toEqual(["mine", "mine"]);
  expect(new Set(ids.map(([first]) => first)).size).toBe(2);
  expect(item).not.toHaveProperty("requestId");
});

test("stops after maxAttempts with the last error", async () => {
  proxy.next(unavailable, unavailable, unavailable, overloaded, "pass");
  const error = await rejection(client.apiKeys.verifyApiKey({ credential: "x" }));
  expect([error.code, errorReason(error), proxy.sent.length]).toEqual([Code.Unavailable, "OVERLOADED", 4]);
});

test("does not retry a response", async () => {
  proxy.next();
  const error = await rejection(client.apiKeys.verifyApiKey({ credential: "" }));
  expect([error.code, proxy.sent.length]).toEqual([Code.InvalidArgument, 1]);
});

test("does not wait beyond the timeout", async () => {
  proxy.next({ reason: "OVERLOADED", retryAfter: "30" });
  const error = await rejection(client.apiKeys.verifyApiKey({ credential: "x" }));
  expect([errorReason(error), proxy.sent.length]).toEqual(["OVERLOADED", 1]);
});

test("honors Retry-After and sends the remaining timeout", async () => {
  proxy.next({ reason: "OVERLOADED", retryAfter: "1" });
  const begin = performance.now();
  await client.apiKeys.verifyApiKey({ credential: "x" }, { timeoutMs: 5_000 });
  expect(performance.now() - begin).toBeGreaterThan(990);
  const [first = 0, second = 0] = proxy.sent.map(({ headers }) => Number(headers["connect-timeout-ms"]));
  expect(first).toBe(5_000);
  expect(second).toBeLessThan(4_010);
});

test("an abort during the backoff rejects at once", async () => {
  proxy.next({ reason: "OVERLOADED", retryAfter: "5" });
  const controller = new AbortController();
  const call = client.apiKeys.verifyApiKey({ credential: "x" }, { signal: controller.signal });
  await expect.poll(() => proxy.sent.length).toBe(1);
  controller.abort();
  expect((await rejection(call)).code).toBe(Code.Canceled);
});

test("retry: false disables retries", async () => {
  proxy.next(overloaded);
  const once = createKeyholdClient({ baseUrl: proxy.url, retry: false });
  expect(errorReason(await rejection(once.derivedKeys.getJwks({})))).toBe("OVERLOADED");
});

function rejection(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => Promise.reject(new Error("expected a rejection")),
    (error: ConnectError) => error,
  );
}
