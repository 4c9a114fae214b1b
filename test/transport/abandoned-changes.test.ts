import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import postgres from "postgres";
import { expect, onTestFinished, test } from "vitest";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { table } from "../support/conformance.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { eventually } from "../support/keyhold.ts";
import { countWaiting, isAwaited, type LockedRow, lockRow, lockTable } from "../support/locked-row.ts";
import { linesOf } from "../support/log-lines.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useGuardedService(() => ({ KEYHOLD_CACHE_SIZE: "0" }));

type Headers = Readonly<Record<string, string>>;

/** Renames a key. At the signal it disconnects and rejects. */
type Rename = (keyId: string, signal: AbortSignal, headers: Headers) => Promise<unknown>;

const JSON_TYPE = { "content-type": "application/json" };
const BODY = JSON.stringify({ name: "changed" });

const overFetch: Rename = (keyId, signal, headers) =>
  fetch(`${suite.server.url}${paths.issued}/${keyId}`, {
    method: "PATCH",
    headers: { ...JSON_TYPE, ...headers },
    body: BODY,
    signal,
  });

const overReset: Rename = (keyId, signal, headers) =>
  new Promise((_, reject) => {
    const url = `${suite.server.url}${paths.issued}/${keyId}`;
    const sent = request(url, { method: "PATCH", headers: { ...JSON_TYPE, ...headers } });
    sent.on("error", reject).end(BODY);
    signal.addEventListener("abort", () => sent.socket?.resetAndDestroy());
  });

const overHttp2: Rename = (keyId, signal, headers) =>
  new Promise((_, reject) => {
    const session = connectHttp2(suite.server.url).on("error", () => {});
    const head = { ":method": "PATCH", ":path": `${paths.issued}/${keyId}`, ...JSON_TYPE };
    const stream = session.request({ ...head, ...headers }, { signal });
    stream.on("error", reject).on("close", () => session.close());
    stream.end(BODY);
  });

const over = (open: () => Transport): Rename => {
  return (keyId, signal, headers) =>
    createClient(IssuedApiKeysService, open()).updateIssuedApiKey(
      { issuedApiKey: { keyId, name: "changed" } },
      { signal, headers },
    );
};

const connect = (httpVersion: "1.1" | "2") =>
  over(() => createConnectTransport({ baseUrl: suite.server.url, httpVersion, useBinaryFormat: false }));
const grpc = over(() => createGrpcTransport({ baseUrl: suite.server.url }));
const grpcWeb = over(() => createGrpcWebTransport({ baseUrl: suite.server.url, httpVersion: "1.1" }));

const authorization = () => bearer(suite.token("keyhold:admin"));

/** Returns the log lines of the request with this id. */
const requestLines = (requestId: string): Json[] =>
  linesOf(suite.server.log()).filter(({ reqId, msg }) => reqId === requestId && msg === "request");

/** With the code of the change. A client of HTTP/1.1 may have closed only its sending side, so its response is still written. */
const WAYS = table([
  ["REST over HTTP/1.1", "rest", overFetch, "OK", "NOT_FOUND"],
  ["REST over a reset HTTP/1.1 connection", "rest", overReset, "CANCELLED", "CANCELLED"],
  ["REST over HTTP/2", "rest", overHttp2, "CANCELLED", "CANCELLED"],
  ["Connect over HTTP/1.1", "connect", connect("1.1"), "OK", "NOT_FOUND"],
  ["Connect over HTTP/2", "connect", connect("2"), "CANCELLED", "CANCELLED"],
  ["gRPC", "grpc", grpc, "CANCELLED", "CANCELLED"],
  ["gRPC-Web", "grpc_web", grpcWeb, "OK", "NOT_FOUND"],
] as const);

const RPC = "keyhold.v2alpha1.IssuedApiKeysService/UpdateIssuedApiKey";

/** Renames a key and disconnects while the change waits; the change then succeeds, or fails because the key was deleted. Returns its log lines. */
async function abandon(rename: Rename, keyId: string, how: keyof LockedRow): Promise<Json[]> {
  const row = await lockRow(suite.sql, keyId);
  const requestId = randomUUID();
  const client = new AbortController();
  const outcome = rename(keyId, client.signal, { "x-request-id": requestId, ...authorization() }).catch(
    (error: unknown) => error,
  );
  await eventually(() => isAwaited(suite.sql));
  client.abort();
  expect(await outcome).toBeInstanceOf(Error);
  await row[how]();
  await eventually(async () => requestLines(requestId).length > 0);
  return requestLines(requestId);
}

test.each(WAYS)(
  "a change over %s whose client disconnects has one log line with its key",
  async (_, protocol, rename, code) => {
    const { keyId } = await issue(suite.rest);
    const lines = await abandon(rename, keyId, "release");
    expect((await suite.rest("GET", `${paths.issued}/${keyId}`)).body.name).toBe("changed");
    const status = code === "OK" ? 200 : 499;
    expect(lines).toMatchObject([
      { rpc: RPC, protocol, code, status, key_id: keyId, caller: expect.stringMatching(/^admin-token:/) },
    ]);
  },
);

test.each(WAYS)(
  "a change over %s that fails after the client disconnects has one log line without a key",
  async (_, protocol, rename, _ok, code) => {
    const { keyId } = await issue(suite.rest);
    const lines = await abandon(rename, keyId, "releaseDeleted");
    expect(lines).toMatchObject([{ rpc: RPC, protocol, code, caller: expect.stringMatching(/^admin-token:/) }]);
    expect(lines[0]).not.toHaveProperty("key_id");
  },
);

const DEADLINES: Readonly<Record<string, Headers>> = {
  connect: { "connect-timeout-ms": "1500" },
  grpc: { "grpc-timeout": "1500m" },
  grpc_web: { "grpc-timeout": "1500m" },
};

const WITH_DEADLINE = table(WAYS.filter(([, protocol]) => protocol in DEADLINES));

test.each(WITH_DEADLINE)(
  "a change over %s that exceeds its deadline has one log line with its key",
  async (_, protocol, rename) => {
    const { keyId } = await issue(suite.rest);
    const { release } = await lockRow(suite.sql, keyId);
    const requestId = randomUUID();
    const headers = { "x-request-id": requestId, ...authorization(), ...DEADLINES[protocol] };
    await expect(rename(keyId, new AbortController().signal, headers)).rejects.toThrow();
    expect(await isAwaited(suite.sql)).toBe(true);
    await release();
    await eventually(async () => requestLines(requestId).length > 0);
    expect(requestLines(requestId)).toMatchObject([{ rpc: RPC, protocol, code: "DEADLINE_EXCEEDED", key_id: keyId }]);
  },
);

test("a change whose deadline passes after its body was received, during authentication, is not executed", async () => {
  const { keyId } = await issue(suite.rest);
  const sql = postgres(suite.server.ownerUrl, { max: 3 });
  onTestFinished(() => sql.end());
  const releaseFirst = await lockTable(sql, "api_keys");
  const requestId = randomUUID();
  const sent = request(`${suite.server.url}/${RPC}`, {
    method: "POST",
    headers: { ...JSON_TYPE, ...authorization(), ...DEADLINES.connect, "x-request-id": requestId },
  });
  sent.flushHeaders();
  const response = once(sent, "response");
  await eventually(() => isAwaited(sql));
  // The lock of a request that is granted after the first authentication, and before that of the complete request.
  const second = lockTable(sql, "api_keys");
  await eventually(async () => (await countWaiting(sql)) > 1);
  await releaseFirst();
  const releaseSecond = await second;
  sent.end(JSON.stringify({ issuedApiKey: { keyId, name: "changed" } }));
  expect((await response)[0].statusCode).toBe(504);
  await releaseSecond();
  // It is written when the work has ended.
  await eventually(async () => requestLines(requestId).length > 0);
  expect(requestLines(requestId)).toMatchObject([{ rpc: RPC, protocol: "connect", code: "DEADLINE_EXCEEDED" }]);
  expect(requestLines(requestId)[0]).not.toHaveProperty("key_id");
  expect((await suite.rest("GET", `${paths.issued}/${keyId}`)).body.name).not.toBe("changed");
});

const NOTICED = table(WAYS.filter(([, , , code]) => code === "CANCELLED"));

test.each(NOTICED)(
  "a change over %s whose client disconnects during authentication has its key in the log only if it is executed",
  async (_, _protocol, rename) => {
    const { keyId } = await issue(suite.rest);
    const release = await lockTable(suite.sql, "api_keys");
    const requestId = randomUUID();
    const client = new AbortController();
    const outcome = rename(keyId, client.signal, { "x-request-id": requestId, ...authorization() }).catch(() => null);
    await eventually(() => isAwaited(suite.sql));
    client.abort();
    await outcome;
    await (await fetch(`${suite.server.url}/health/alive`)).text();
    await release();
    await eventually(async () => requestLines(requestId).length > 0);
    const { body } = await suite.rest("GET", `${paths.issued}/${keyId}`);
    expect(requestLines(requestId)).toHaveLength(1);
    expect(requestLines(requestId)[0].key_id).toBe(body.name === "changed" ? keyId : undefined);
  },
);
