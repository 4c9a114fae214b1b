import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { status } from "@grpc/grpc-js";
import { describe, expect, test, vi } from "vitest";
import {
  ApiKeysService,
  type StreamVerifyResponse,
  VerificationError,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { MAX_UNANSWERED } from "../../../src/transport/fast-path/verification-stream.ts";
import { revoke, table, useService } from "../../support/conformance.ts";
import { isAwaited, lockTable } from "../../support/locked-row.ts";
import { linesOf } from "../../support/log-lines.ts";
import { issue } from "../../support/rest.ts";
import { requestFrame } from "../../support/stream-frames.ts";
import { openRawStream, openStream, readRawStream } from "../../support/verification-stream.ts";

const suite = useService();

/** Returns the verdict of each answer by its id, as text. */
function verdicts(answers: readonly StreamVerifyResponse[]): Record<number, string> {
  return Object.fromEntries(
    answers.map(({ id, result }) => {
      if (result.case === "error") return [id, `${Code[result.value.code]}: ${result.value.message}`];
      return [id, result.value?.isValid ? "VALID" : (VerificationError[result.value?.errorCode ?? 0] ?? "")];
    }),
  );
}

const requestLine = (id: string) =>
  vi.waitFor(() => {
    const line = linesOf(suite.server.log()).find(({ reqId, msg }) => reqId === id && msg === "request");
    if (line === undefined) throw new Error("not logged yet");
    return line;
  });

/** Makes each verification of the stream read the database. */
const UNCACHED = { "cache-control": "no-cache" };

test("each answer has the id of its request and is that of VerifyApiKey", async () => {
  const { secret, keyId } = await issue(suite.rest, { scopes: ["a", "b"], metadata: { team: "x" } });
  const stream = openStream(suite.server.address);
  const presented = [
    { id: 0, request: { credential: secret, requiredScopes: ["a"] } },
    { id: 7, request: { credential: secret, requiredScopes: ["c"] } },
    { id: 2 ** 32 - 1, request: { credential: "no such key", clientIp: "192.0.2.1" } },
  ];
  for (const request of presented) stream.send(request);
  const answers = await stream.received(3);
  const transport = createConnectTransport({ baseUrl: suite.server.url, httpVersion: "2" });
  const { verifyApiKey } = createClient(ApiKeysService, transport);
  for (const { id, request } of presented) {
    const answer = answers.find((one) => one.id === id);
    expect(answer?.result).toEqual({ case: "response", value: await verifyApiKey(request) });
  }
  expect(answers.find(({ id }) => id === 7)?.result.value).toMatchObject({ keyId, missingScopes: ["c"] });
  expect(await stream.end()).toMatchObject({ code: status.OK });
});

test("a request that breaks a rule gets the error of VerifyApiKey, and the others their verdicts", async () => {
  const { secret } = await issue(suite.rest);
  const stream = openStream(suite.server.address);
  stream.send({ id: 1, request: { credential: "" } });
  stream.send({ id: 2 });
  stream.send({ id: 3, request: { credential: "x".repeat(8_193) } });
  stream.send({ id: 4, request: { credential: secret } });
  const answers = await stream.received(4);
  expect(verdicts(answers)).toMatchObject({ 4: "VALID", 1: expect.stringMatching(/^InvalidArgument: credential/) });
  for (const { id, result } of answers) {
    if (id === 4) continue;
    const details = [
      { typeUrl: expect.stringMatching(/ErrorInfo$/) },
      { typeUrl: expect.stringMatching(/BadRequest$/) },
    ];
    expect(result.value).toMatchObject({ code: Code.InvalidArgument, details });
  }
  expect(await stream.end()).toMatchObject({ code: status.OK });
});

test("Connect's client gets the same answers over HTTP/2, and UNIMPLEMENTED over HTTP/1.1", async () => {
  const { secret } = await issue(suite.rest);
  const requests = async function* () {
    yield { id: 5, request: { credential: secret } };
    yield { id: 6, request: { credential: "no such key" } };
  };
  const call = (httpVersion: "1.1" | "2") => {
    const transport = createConnectTransport({ baseUrl: suite.server.url, httpVersion, useBinaryFormat: true });
    return Array.fromAsync(createClient(ApiKeysService, transport).streamVerify(requests()));
  };
  expect(verdicts(await call("2"))).toEqual({ 5: "VALID", 6: "NOT_FOUND" });
  await expect(call("1.1")).rejects.toThrow();
});

test("answers come in any order: one from the cache does not wait for those from the database", async () => {
  const [cold, warm] = [await issue(suite.rest), await issue(suite.rest)];
  const first = openStream(suite.server.address);
  first.send({ id: 1, request: { credential: warm.secret } });
  await first.received(1);
  const unlock = await lockTable(suite.sql, "api_keys");
  first.send({ id: 2, request: { credential: cold.secret } });
  first.send({ id: 3, request: { credential: warm.secret } });
  expect(verdicts(await first.received(2))).toEqual({ 1: "VALID", 3: "VALID" });
  await unlock();
  expect(verdicts(await first.received(3))).toMatchObject({ 2: "VALID" });
});

test("ids that repeat are answered as often as they are sent", async () => {
  const [one, other] = [await issue(suite.rest), await issue(suite.rest)];
  const stream = openStream(suite.server.address, UNCACHED);
  for (const { secret } of [one, other, one, other]) stream.send({ id: 9, request: { credential: secret } });
  const answers = await stream.received(4);
  const keyIds = answers.map(({ result }) => (result.case === "response" ? result.value.keyId : undefined));
  expect(keyIds.sort()).toEqual([one.keyId, one.keyId, other.keyId, other.keyId].sort());
});

test("a key that is revoked in mid-stream is rejected by the next verification", async () => {
  const stream = openStream(suite.server.address);
  for (let id = 0; id < 5; id++) {
    const { secret, keyId } = await issue(suite.rest);
    stream.send({ id: 2 * id, request: { credential: secret } });
    await stream.received(2 * id + 1);
    await revoke(suite.rest, keyId);
    stream.send({ id: 2 * id + 1, request: { credential: secret } });
    const answers = await stream.received(2 * id + 2);
    expect(verdicts(answers)).toMatchObject({ [2 * id]: "VALID", [2 * id + 1]: "REVOKED" });
  }
});

test("a client that has ended its requests still gets the answers that wait", async () => {
  const { secret } = await issue(suite.rest);
  const unlock = await lockTable(suite.sql, "api_keys");
  const stream = openStream(suite.server.address, UNCACHED);
  stream.send({ id: 1, request: { credential: secret } });
  const ended = stream.end();
  await suite.rest("GET", "/health/alive");
  expect(stream.answers).toEqual([]);
  await unlock();
  expect(await ended).toMatchObject({ code: status.OK });
  expect(verdicts(stream.answers)).toEqual({ 1: "VALID" });
});

test(`no request is read while ${MAX_UNANSWERED} wait, and all are answered later`, async () => {
  const { secret } = await issue(suite.rest);
  const unlock = await lockTable(suite.sql, "api_keys");
  const waiting = openRawStream(suite.server.url, UNCACHED);
  const read = readRawStream(waiting);
  const count = 2 * MAX_UNANSWERED;
  for (let id = 0; id < count; id++) {
    // Answered without the database, so that what is beyond the limit would be answered now.
    const credential = id < MAX_UNANSWERED ? secret : "";
    waiting.write(requestFrame({ id, request: { credential } }));
  }
  waiting.end();
  let early = 0;
  waiting.on("data", () => early++);
  for (let i = 0; i < 20; i++) await suite.rest("GET", "/health/alive");
  expect(early).toBe(0);
  await unlock();
  const { answers, status } = await read;
  expect(status).toBe("0");
  expect(new Set(answers.map(({ id }) => id)).size).toBe(count);
});

describe("the end of a stream", () => {
  const malformed = Buffer.from([0, 0, 0, 0, 2, 0xff, 0xff]);
  const valid = () => requestFrame({ id: 1, request: { credential: "no such key" } });

  test.for(
    table([
      ["a message that is not Protobuf", () => malformed, "3"],
      ["a request in it that is not Protobuf", () => Buffer.from([0, 0, 0, 0, 6, 8, 1, 0x12, 2, 0xff, 0xff]), "3"],
      ["an incomplete message", () => valid().subarray(0, -1), "3"],
      ["half of the head of a message", () => Buffer.from([0, 0]), "3"],
      ["a compressed message", () => Buffer.from([1, 0, 0, 0, 0]), "13"],
      ["a message of 4 GiB", () => Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), "8"],
      ["a message of more than 32 KiB", () => requestFrame({ request: { credential: "x".repeat(32_768) } }), "8"],
    ] as const),
  )("%s ends it after the answers to those before", async ([, bytes, expected]) => {
    const stream = openRawStream(suite.server.url);
    const read = readRawStream(stream);
    stream.write(valid());
    stream.end(bytes());
    const { answers, status } = await read;
    expect({ status, answers: verdicts(answers) }).toEqual({ status: expected, answers: { 1: "NOT_FOUND" } });
  });

  test("messages may be split at any byte, and come many in one frame", async () => {
    const bytes = Buffer.concat([1, 2, 3].map((id) => requestFrame({ id, request: { credential: `no such ${id}` } })));
    const stream = openRawStream(suite.server.url);
    const read = readRawStream(stream);
    for (const byte of bytes) stream.write(Buffer.from([byte]));
    stream.end(bytes);
    const { answers, status } = await read;
    expect(status).toBe("0");
    expect(answers.map(({ id }) => id).sort()).toEqual([1, 1, 2, 2, 3, 3]);
  });

  test.for(
    table([
      ["a compression", { "grpc-encoding": "gzip" }, "12"],
      ["a malformed deadline", { "grpc-timeout": "soon" }, "3"],
      ["JSON messages", { "content-type": "application/grpc+json" }, "12"],
      ["gRPC-Web", { "content-type": "application/grpc-web+proto" }, "12"],
    ] as const),
  )("a stream with %s is rejected", async ([, headers, expected]) => {
    const stream = openRawStream(suite.server.url, headers);
    const statuses: unknown[] = [];
    stream.on("response", (fields) => statuses.push(fields["grpc-status"]));
    stream.on("trailers", (fields) => statuses.push(fields["grpc-status"]));
    stream.end(valid()).resume();
    await once(stream, "close");
    expect(statuses).toContain(expected);
  });

  test("there is no REST path", async () => {
    expect((await suite.rest("POST", "/v2alpha1/admin/apiKeys:streamVerify", {})).status).toBe(404);
  });

  test.for(table(["gRPC", "Connect"]))("the deadline ends it, over %s", async (protocol) => {
    if (protocol === "gRPC") {
      const stream = openStream(suite.server.address, {}, 200);
      expect(await stream.status).toMatchObject({ code: status.DEADLINE_EXCEEDED });
      return;
    }
    const transport = createConnectTransport({ baseUrl: suite.server.url, httpVersion: "2", defaultTimeoutMs: 200 });
    const never = async function* () {
      await new Promise(() => {});
      yield {};
    };
    const answers = Array.fromAsync(createClient(ApiKeysService, transport).streamVerify(never()));
    expect(ConnectError.from(await answers.catch((error: unknown) => error)).code).toBe(Code.DeadlineExceeded);
  });

  test("the server ends it at the deadline, whatever the client does", async () => {
    const stream = openRawStream(suite.server.url, { "grpc-timeout": "100m", "x-request-id": "late" });
    stream.write(valid());
    const { answers, status } = await readRawStream(stream);
    expect({ status, answers: verdicts(answers) }).toEqual({ status: "4", answers: { 1: "NOT_FOUND" } });
    expect(await requestLine("late")).toMatchObject({ code: "DEADLINE_EXCEEDED", verdicts: "NOT_FOUND=1" });
  });
});

describe("the log line", () => {
  test("is one for a stream, with the counts of its verdicts, and has no secret", async () => {
    const { secret } = await issue(suite.rest);
    const before = suite.server.log().length;
    const stream = openStream(suite.server.address, { "x-request-id": "counted" });
    for (let id = 0; id < 6; id++) {
      const credential = id < 3 ? secret : id < 5 ? `${secret}x` : "";
      stream.send({ id, request: { credential } });
    }
    await stream.received(6);
    await stream.end();
    const line = await requestLine("counted");
    expect(line).toMatchObject({ rpc: "keyhold.v2alpha1.ApiKeysService/StreamVerify", protocol: "grpc", code: "OK" });
    expect(line.verdicts.split(",").sort()).toEqual(["INVALID_ARGUMENT=1", "INVALID_FORMAT=2", "VALID=3"]);
    const added = suite.server.log().slice(before);
    expect(linesOf(added).filter(({ msg }) => msg === "request")).toHaveLength(1);
    expect(added).not.toContain(secret.slice(0, 20));
  });

  test("has the counts of a stream that the client resets", async () => {
    const { secret } = await issue(suite.rest);
    const stream = openStream(suite.server.address, { "x-request-id": "reset" });
    stream.send({ id: 1, request: { credential: secret } });
    await stream.received(1);
    stream.call.cancel();
    expect(await requestLine("reset")).toMatchObject({ code: "CANCELLED", status: 499, verdicts: "VALID=1" });
  });
});

describe("a client that does not read", () => {
  test("is read no further, does not disturb others, and gets every answer when it reads", async () => {
    const { secret } = await issue(suite.rest, { metadata: { text: "x".repeat(500) } });
    const stream = openRawStream(suite.server.url);
    const requests = Buffer.concat(
      Array.from({ length: 1_000 }, (_, id) => requestFrame({ id, request: { credential: secret } })),
    );
    const batches = 40;
    let written = 0;
    for (let i = 0; i < batches; i++) stream.write(requests, () => written++);
    stream.end();
    // The window of a stream is 1 MiB; the server reads no more than it answers.
    const settled = async () => {
      const before = written;
      for (let i = 0; i < 10; i++) await suite.rest("GET", "/health/alive");
      return written === before;
    };
    while (!(await settled()));
    expect(written * requests.length).toBeLessThan(3 * 2 ** 20);
    const other = openStream(suite.server.address);
    other.send({ id: 1, request: { credential: secret } });
    await other.received(1);
    const { answers, status } = await readRawStream(stream);
    expect({ status, answers: answers.length }).toEqual({ status: "0", answers: batches * 1_000 });
  });
});

test("a client that disconnects while answers are written is no fault", async () => {
  const before = suite.server.log().length;
  for (let i = 0; i < 20; i++) {
    const stream = openRawStream(suite.server.url);
    for (let id = 0; id < 3_000; id++)
      stream.write(requestFrame({ id, request: { credential: `unknown ${i} ${id}` } }));
    await sleep(3 * i);
    stream.session?.destroy();
  }
  await vi.waitFor(async () => {
    await suite.rest("GET", "/health/alive");
    const lines = linesOf(suite.server.log().slice(before));
    expect(lines.filter(({ code }) => code === "CANCELLED").length).toBeGreaterThan(5);
    expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
  });
});

test("a server that stops answers what it has received, and ends the stream with UNAVAILABLE", async () => {
  const { secret } = await issue(suite.rest);
  const [idle, busy] = [openStream(suite.server.address), openStream(suite.server.address, UNCACHED)];
  idle.send({ id: 1, request: { credential: secret } });
  await idle.received(1);
  const unlock = await lockTable(suite.sql, "api_keys");
  busy.send({ id: 2, request: { credential: secret } });
  await vi.waitFor(async () => expect(await isAwaited(suite.sql)).toBe(true));
  const restarted = suite.server.restart();
  expect(await idle.status).toMatchObject({ code: status.UNAVAILABLE, details: "the server is stopping" });
  await unlock();
  expect(await busy.status).toMatchObject({ code: status.UNAVAILABLE });
  expect(verdicts(busy.answers)).toEqual({ 2: "VALID" });
  await restarted;
});
