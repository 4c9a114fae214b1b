import type { ConnectError } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, test, vi } from "vitest";
import {
  Code,
  createKeyholdClient,
  errorReason,
  fieldViolations,
  type KeyholdClientOptions,
} from "../../src/client/index.ts";
import { createKeyVerifier } from "../../src/verifier/index.ts";
import { revoke } from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { lockTable } from "../support/locked-row.ts";
import { linesOf } from "../support/log-lines.ts";
import { issue } from "../support/rest.ts";

const suite = useGuardedService();

const optionsOf = (more: Partial<KeyholdClientOptions> = {}) => ({
  transport: createGrpcTransport({ baseUrl: suite.server.url }),
  token: suite.token("keyhold:verify"),
  ...more,
});

/** A client that verifies over a stream. */
const streaming = (more: Partial<KeyholdClientOptions> = {}) =>
  createKeyholdClient(optionsOf({ stream: true, ...more }));

/** Returns the calls of an RPC in the log. */
const callsOf = (name: string) => linesOf(suite.server.log()).filter(({ rpc }) => rpc?.endsWith(`/${name}`));

test("calls share a stream, and have the results and errors of calls of their own", async () => {
  const { secret } = await issue(suite.rest, { scopes: ["read"] });
  const [streamed, unary] = [streaming(), createKeyholdClient(optionsOf())];
  const before = callsOf("VerifyApiKey").length;
  const requests = [
    { credential: secret },
    { credential: secret, requiredScopes: ["write"] },
    { credential: "nobody's", clientIp: "192.0.2.1" },
  ];
  const answers = await Promise.all(requests.map((request) => streamed.apiKeys.verifyApiKey(request)));
  expect(callsOf("VerifyApiKey")).toHaveLength(before);
  expect(answers).toEqual(await Promise.all(requests.map((request) => unary.apiKeys.verifyApiKey(request))));
  const errors = [streamed, unary].map(async ({ apiKeys }) => {
    const error = await apiKeys.verifyApiKey({ credential: "", audience: "ü" }).catch((error: unknown) => error);
    return { code: (error as { code: Code }).code, reason: errorReason(error), fields: fieldViolations(error) };
  });
  const [overStream, overUnary] = await Promise.all(errors);
  expect(overStream).toEqual(overUnary);
  expect(overStream).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_ARGUMENT" });
});

test("a call with headers of its own is a call of its own", async () => {
  const before = callsOf("VerifyApiKey").length;
  await streaming().apiKeys.verifyApiKey({ credential: "nobody's" }, { headers: { "cache-control": "no-cache" } });
  await vi.waitFor(() => expect(callsOf("VerifyApiKey")).toHaveLength(before + 1));
});

test("other calls are not affected", async () => {
  const { apiKeys } = streaming({ token: suite.token("keyhold:admin") });
  expect(await apiKeys.listApiKeys({ pageSize: 1 })).toMatchObject({ apiKeys: [{}] });
});

test("a verifier over a stream accepts and rejects, and sees a revocation at once", async () => {
  const { secret, keyId } = await issue(suite.rest, { scopes: ["read"] });
  const { verify } = createKeyVerifier(optionsOf({ stream: true }));
  expect(await verify(secret, { requiredScopes: ["read"] })).toMatchObject({ ok: true, credential: { keyId } });
  expect(await verify("")).toMatchObject({ ok: false, reason: "INVALID_FORMAT" });
  await revoke(suite.rest, keyId);
  expect(await verify(secret)).toMatchObject({ ok: false, reason: "REVOKED" });
});

test("a server that restarts loses no call: those without an answer are sent again, over another stream", async () => {
  const { secret } = await issue(suite.rest);
  const url = new URL(suite.server.url);
  const transport = createGrpcTransport({ baseUrl: url.href });
  // The server may be away for longer than the default retries last.
  const { apiKeys } = streaming({ transport, retry: { maxAttempts: 20 } });
  let isOver = false;
  let count = 0;
  const callers = Array.from({ length: 20 }, async () => {
    while (!isOver) {
      expect(await apiKeys.verifyApiKey({ credential: secret })).toMatchObject({ isValid: true });
      count++;
    }
  });
  for (let i = 0; i < 2; i++) {
    const before = count;
    await expect.poll(() => count).toBeGreaterThan(before + 100);
    await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_PORT: url.port });
  }
  const before = count;
  await expect.poll(() => count).toBeGreaterThan(before + 100);
  isOver = true;
  await Promise.all(callers);
});

describe("the caller's token", () => {
  test("is read again when the stream ends because it is no longer accepted", async () => {
    const [first, second] = [
      await issue(suite.rest, { scopes: ["keyhold:verify"] }),
      await issue(suite.rest, { scopes: ["keyhold:verify"] }),
    ];
    let current = first;
    const { apiKeys } = streaming({ token: () => current.secret });
    await apiKeys.verifyApiKey({ credential: "nobody's" });
    current = second;
    await revoke(suite.rest, first.keyId);
    expect(await apiKeys.verifyApiKey({ credential: "nobody's" })).toMatchObject({ isValid: false });
  });

  test("ends a call with UNAUTHENTICATED if it is not accepted, and the next one opens another stream", async () => {
    let token = "nobody's";
    const { apiKeys } = streaming({ token: () => token.replace("'", "") });
    const error = await apiKeys.verifyApiKey({ credential: "x" }).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: Code.Unauthenticated });
    expect(errorReason(error)).toBe("CALLER_UNAUTHENTICATED");
    token = suite.token("keyhold:verify");
    expect(await apiKeys.verifyApiKey({ credential: "x" })).toMatchObject({ isValid: false });
  });
});

test("a call ends at its timeout, and by its signal, while others go on", async () => {
  const { secret } = await issue(suite.rest);
  const { apiKeys } = streaming();
  const abort = new AbortController();
  const unlock = await lockTable(suite.sql, "api_keys");
  const [late, aborted, patient] = [
    apiKeys.verifyApiKey({ credential: secret }, { timeoutMs: 100 }).catch((error: unknown) => error),
    apiKeys.verifyApiKey({ credential: secret }, { signal: abort.signal }).catch((error: unknown) => error),
    apiKeys.verifyApiKey({ credential: secret }),
  ];
  expect(await late).toMatchObject({ code: Code.DeadlineExceeded });
  abort.abort();
  expect(await aborted).toMatchObject({ code: Code.Canceled });
  await unlock();
  expect(await patient).toMatchObject({ isValid: true });
});

test("an idle stream is ended, so that the process may exit, and the next call opens another one", async () => {
  const transport = createGrpcTransport({ baseUrl: suite.server.url });
  let ended = 0;
  const counting: typeof transport = {
    unary: (...call) => transport.unary(...call),
    stream: (method, signal, timeoutMs, header, input, values) => {
      const requests = async function* () {
        yield* input;
        ended++;
      };
      return transport.stream(method, signal, timeoutMs, header, requests(), values);
    },
  };
  const { apiKeys } = streaming({ transport: counting });
  for (const count of [1, 2]) {
    await apiKeys.verifyApiKey({ credential: "nobody's" });
    await vi.waitFor(() => expect(ended).toBe(count), 5_000);
  }
});

test("a server without StreamVerify gets a call for each", async () => {
  const transport = createGrpcTransport({ baseUrl: suite.server.url });
  const older: typeof transport = {
    unary: (...call) => transport.unary(...call),
    stream: (method, ...call) => transport.stream({ ...method, name: "Unknown" }, ...call),
  };
  const { apiKeys } = streaming({ transport: older });
  for (let i = 0; i < 2; i++) expect(await apiKeys.verifyApiKey({ credential: "x" })).toMatchObject({ isValid: false });
});

test("fetch cannot stream", () => {
  expect(() => createKeyholdClient({ baseUrl: suite.server.url, stream: true })).toThrow(/^stream: requires/);
});

test("a call over a limit is retried when the error says", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_CALLER_VERIFICATION_FAILURE_RATE: "1" });
  const request = { credential: "nobody's" };
  const clients = [streaming({ retry: false }), createKeyholdClient(optionsOf({ retry: false }))];
  for (const { apiKeys } of clients) {
    const calls = await Promise.allSettled(Array.from({ length: 20 }, () => apiKeys.verifyApiKey(request)));
    const errors = calls.flatMap((call) => (call.status === "rejected" ? [call.reason as ConnectError] : []));
    expect(errors[0]?.metadata.get("retry-after")).toMatch(/^[1-5]$/);
  }
  expect(await streaming().apiKeys.verifyApiKey(request)).toMatchObject({ isValid: false });
});
