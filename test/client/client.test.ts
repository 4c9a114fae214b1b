import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  Code,
  ConnectError,
  CredentialType,
  createKeyholdClient,
  errorReason,
  fieldViolations,
  type KeyholdClient,
  RevocationReason,
  TokenAlgorithm,
} from "../../src/client/index.ts";
import { UNKNOWN_KEY_ID } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { useGuardedService } from "../support/guarded.ts";

const suite = useGuardedService();

let session: Http2SessionManager;
let clients: Record<string, KeyholdClient>;
beforeAll(() => {
  const [baseUrl, token] = [suite.server.url, suite.token("keyhold:admin")];
  session = new Http2SessionManager(baseUrl);
  const transport = createGrpcTransport({ baseUrl, sessionManager: session });
  clients = {
    fetch: createKeyholdClient({ baseUrl, token }),
    "another transport": createKeyholdClient({ transport, token: async () => token }),
  };
});
afterAll(() => session.abort());

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof ConnectError) return error;
  throw new Error(`expected a ConnectError, not ${error}`);
}

test.for(["fetch", "another transport"])("the life of a key over %s", async (name) => {
  const { issuedApiKeys, apiKeys, derivedKeys, selfService } = clients[name] as KeyholdClient;
  const { secret = "", issuedApiKey } = await issuedApiKeys.createIssuedApiKey({
    name: "a",
    actorId: "b",
    scopes: ["c"],
  });
  const verdict = await apiKeys.verifyApiKey({ credential: secret });
  expect(verdict).toMatchObject({ isValid: true, credentialType: CredentialType.ISSUED_API_KEY, scopes: ["c"] });
  const { token } = await apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });
  expect(token?.scopes).toEqual(["c"]);
  expect((await derivedKeys.getJwks({})).keys.length).toBe(1);
  const { results } = await apiKeys.batchVerifyApiKeys({ requests: [{ credential: token?.token }] });
  expect(results.map(({ keyId }) => keyId)).toEqual([issuedApiKey?.keyId]);
  await selfService.selfRevokeApiKey({ credential: secret, reason: RevocationReason.SUPERSEDED });
  expect((await apiKeys.verifyApiKey({ credential: token?.token })).isValid).toBe(false);
});

test("errors have a reason and field violations", async () => {
  const { issuedApiKeys } = clients.fetch as KeyholdClient;
  const unknown = await failure(issuedApiKeys.getIssuedApiKey({ keyId: UNKNOWN_KEY_ID }));
  expect([unknown.code, errorReason(unknown), fieldViolations(unknown)]).toEqual([
    Code.NotFound,
    "API_KEY_NOT_FOUND",
    [],
  ]);
  const invalid = await failure(issuedApiKeys.createIssuedApiKey({ name: "a", actorId: "b", ttl: "soon" }));
  expect([errorReason(invalid), fieldViolations(invalid)]).toEqual([
    "INVALID_ARGUMENT",
    [{ field: "ttl", description: expect.stringMatching(/^must be a duration/), reason: "INVALID_FORMAT" }],
  ]);
  expect([errorReason(new Error("other")), fieldViolations("anything")]).toEqual([undefined, []]);
});

test("the token is read for each call, and an explicit Authorization takes precedence", async () => {
  const tokens = [suite.token("keyhold:keys.read"), suite.token("keyhold:verify")];
  const client = createKeyholdClient({ baseUrl: suite.server.url, token: () => tokens.shift() ?? "" });
  await client.issuedApiKeys.listIssuedApiKeys({});
  expect(errorReason(await failure(client.issuedApiKeys.listIssuedApiKeys({})))).toBe("CALLER_NOT_PERMITTED");
  const headers = { authorization: `Bearer ${suite.token("keyhold:admin")}` };
  await client.issuedApiKeys.listIssuedApiKeys({}, { headers });
});

test("an invalid token is rejected without quoting it", async () => {
  const token = "kh_v1_secret\n";
  const [url, problem] = [suite.server.url, /^token: must be a non-empty bearer token (?!.*secret)/];
  expect(() => createKeyholdClient({ baseUrl: url, token })).toThrow(problem);
  const later = createKeyholdClient({ baseUrl: url, token: () => token });
  const error = await failure(later.derivedKeys.getJwks({}));
  for (const text of [error.message, String(error.cause)]) {
    expect(text).toContain("token: must be a non-empty bearer token");
    expect(text).not.toContain("secret");
  }
});

test.for(["keys.example.com", "ftp://keys.example.com", ""])("no client of %j", (baseUrl) => {
  expect(() => createKeyholdClient({ baseUrl })).toThrow(
    /^baseUrl: must be an http or https URL without a user or password$/,
  );
});

test("abort and timeout reject", async () => {
  const { apiKeys } = createKeyholdClient({ baseUrl: suite.server.url, token: suite.token("keyhold:verify") });
  const request = { credential: "nothing" };
  expect((await failure(apiKeys.verifyApiKey(request, { signal: AbortSignal.abort() }))).code).toBe(Code.Canceled);
  const endless = createKeyholdClient({
    baseUrl: suite.server.url,
    timeoutMs: 1,
    fetch: (_, init) => new Promise((_, reject) => init?.signal?.addEventListener("abort", reject)),
  });
  expect((await failure(endless.apiKeys.verifyApiKey(request))).code).toBe(Code.DeadlineExceeded);
});

test("a list is walked page by page", async () => {
  const { importedApiKeys } = clients.fetch as KeyholdClient;
  const requests = [1, 2, 3].map((n) => ({ rawKey: `paged-${crypto.randomUUID()}`, name: `${n}`, actorId: "pages" }));
  expect((await importedApiKeys.batchCreateImportedApiKeys({ requests })).successCount).toBe(3);
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await importedApiKeys.listImportedApiKeys({ filter: 'actor_id="pages"', pageSize: 2, pageToken });
    names.push(...page.importedApiKeys.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(names.sort()).toEqual(["1", "2", "3"]);
});

test.for(["fetch", "another transport"])("the audit log is watched over %s until the call is aborted", async (name) => {
  const { audit, issuedApiKeys } = clients[name] as KeyholdClient;
  const { issuedApiKey } = await issuedApiKeys.createIssuedApiKey({ name: "a", actorId: "watched" });
  const filter = `key_id="${issuedApiKey?.keyId}"`;
  const { auditEvents } = await audit.listAuditEvents({ filter });
  const call = new AbortController();
  const watched: unknown[] = [];
  const watching = async () => {
    for await (const { auditEvent } of audit.watchAuditEvents({ startSeq: 0n, filter }, { signal: call.signal })) {
      watched.push(auditEvent);
      call.abort();
    }
  };
  expect((await failure(watching())).code).toBe(Code.Canceled);
  expect(watched).toEqual(auditEvents);
});

test("an unreachable server is UNAVAILABLE", async () => {
  const client = createKeyholdClient({ baseUrl: `http://127.0.0.1:${await freePort()}`, retry: { maxAttempts: 2 } });
  expect((await failure(client.derivedKeys.getJwks({}))).code).toBe(Code.Unavailable);
});
