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

/** All RPCs. */
const CALLS = table<Row>([
  { name: "verifyApiKey", repeats: true, call: async () => () => client.apiKeys.verifyApiKey({ credential: "x" }) },
  {
    name: "batchVerifyApiKeys",
    repeats: true,
    call: async () => () => client.apiKeys.batchVerifyApiKeys({ requests: [{ credential: "x" }] }),
  },
  { name: "listApiKeys", repeats: true, call: async () => () => client.apiKeys.listApiKeys({}) },
  {
    name: "explainApiKey",
    repeats: true,
    call: async () => () => client.apiKeys.explainApiKey({ credential: "x" }),
  },
  { name: "getJwks", repeats: true, call: async () => () => client.derivedKeys.getJwks({}) },
  { name: "listIssuedApiKeys", repeats: true, call: async () => () => client.issuedApiKeys.listIssuedApiKeys({}) },
  {
    name: "listImportedApiKeys",
    repeats: true,
    call: async () => () => client.importedApiKeys.listImportedApiKeys({}),
  },
  {
    name: "getIssuedApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.issuedApiKeys.getIssuedApiKey({ keyId });
    },
  },
  {
    name: "getApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.apiKeys.getApiKey({ keyId });
    },
  },
  {
    name: "getImportedApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await importKey(suite.rest);
      return () => client.importedApiKeys.getImportedApiKey({ keyId });
    },
  },
  { name: "createIssuedApiKey", repeats: true, call: async () => () => client.issuedApiKeys.createIssuedApiKey(aKey) },
  {
    name: "createImportedApiKey",
    repeats: true,
    call: async () => () => client.importedApiKeys.createImportedApiKey({ ...aKey, rawKey: newRawKey() }),
  },
  {
    name: "batchCreateImportedApiKeys",
    repeats: true,
    call: async () => () =>
      client.importedApiKeys.batchCreateImportedApiKeys({ requests: [{ ...aKey, rawKey: newRawKey() }] }),
  },
  {
    name: "updateIssuedApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.issuedApiKeys.updateIssuedApiKey({ issuedApiKey: { keyId, name: "c" } });
    },
  },
  {
    name: "updateImportedApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await importKey(suite.rest);
      return () => client.importedApiKeys.updateImportedApiKey({ importedApiKey: { keyId, name: "c" } });
    },
  },
  {
    name: "rotateIssuedApiKey",
    repeats: false,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.issuedApiKeys.rotateIssuedApiKey({ keyId });
    },
  },
  {
    name: "deriveToken",
    repeats: false,
    call: async () => {
      const { secret } = await issue(suite.rest);
      return () => client.apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });
    },
  },
  {
    name: "revokeApiKey",
    repeats: false,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.apiKeys.revokeApiKey({ keyId });
    },
  },
  {
    name: "disableApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.apiKeys.disableApiKey({ keyId });
    },
  },
  {
    name: "enableApiKey",
    repeats: true,
    call: async () => {
      const { keyId } = await issue(suite.rest);
      return () => client.apiKeys.enableApiKey({ keyId });
    },
  },
  {
    name: "bulkRevokeApiKeys",
    repeats: true,
    call: async () => () => client.apiKeys.bulkRevokeApiKeys({ filter: 'name="nothing"' }),
  },
  {
    name: "bulkDisableApiKeys",
    repeats: true,
    call: async () => () => client.apiKeys.bulkDisableApiKeys({ filter: 'name="nothing"' }),
  },
  {
    name: "selfRevokeApiKey",
    repeats: false,
    call: async () => {
      const { secret } = await issue(suite.rest);
      return () => client.selfService.selfRevokeApiKey({ credential: secret, reason: RevocationReason.SUPERSEDED });
    },
  },
  { name: "listHmacKeys", repeats: true, call: async () => () => client.hmacKeys.listHmacKeys({}) },
  {
    name: "createHmacKey",
    repeats: true,
    call: async () => () => client.hmacKeys.createHmacKey(anHmacKey(randomUUID())),
  },
  {
    name: "deleteHmacKey",
    repeats: true,
    reason: "HMAC_KEY_NOT_FOUND",
    call: async () => {
      const { hmacKeyId } = await client.hmacKeys.createHmacKey(anHmacKey(randomUUID()));
      return () => client.hmacKeys.deleteHmacKey({ hmacKeyId });
    },
  },
  {
    name: "deleteImportedApiKey",
    repeats: true,
    reason: "API_KEY_NOT_FOUND",
    call: async () => {
      const { keyId } = await importKey(suite.rest);
      return () => client.importedApiKeys.deleteImportedApiKey({ keyId });
    },
  },
]);

test("the table has every RPC", () => {
  const methods = Object.values(client).flatMap((service) => Object.keys(service));
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
