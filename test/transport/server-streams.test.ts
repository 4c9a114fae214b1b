import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { setImmediate as tick } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import { ConcurrencyLimiter } from "../../src/transport/pipeline/concurrency-limiter.ts";
import { table } from "../support/conformance.ts";
import { WATCH_PROTOCOLS, type WatchError, type Watched } from "../support/protocols/watch.ts";
import { AUTHORIZED, event, heartbeat, RPC, start } from "./stream-server.ts";

async function failure(responses: AsyncIterable<unknown>): Promise<Pick<WatchError, "code" | "message">> {
  const error = await Array.fromAsync(responses).then(
    (all) => new Error(`ended after ${all.length}`),
    (cause) => cause,
  );
  return { code: error.code, message: error.message };
}

async function take(responses: AsyncGenerator<Watched, void>, count: number): Promise<Watched[]> {
  const taken: Watched[] = [];
  while (taken.length < count) {
    const next = await responses.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  return taken;
}

describe.each(table(WATCH_PROTOCOLS.map((protocol) => [protocol.name, protocol] as const)))("%s", (_, protocol) => {
  const { watch } = protocol;
  const open = ({ url }: { url: string }, request = {}, headers = {}, options = {}) =>
    watch(url, request, { headers: { ...AUTHORIZED, ...headers }, ...options });

  test("receives each response when it is sent, and the end", async () => {
    const served = await start();
    const responses = open(served, { startSeq: 7n, filter: "a" }, { "x-request-id": "whole" });
    served.source.push(event(7));
    expect(await take(responses, 1)).toEqual([{ seq: 7, resumeToken: "after-7" }]);
    served.source.push(heartbeat(8), event(9));
    expect(await take(responses, 2)).toEqual([{ resumeToken: "after-8" }, { seq: 9, resumeToken: "after-9" }]);
    served.source.end();
    expect(await responses.next()).toMatchObject({ done: true });
    expect(served.source.requests).toMatchObject([{ startSeq: 7n, filter: "a", resumeToken: "" }]);
    expect(served.source.returned).toBe(1);
    expect(await served.line("whole")).toMatchObject({
      rpc: RPC,
      caller: "admin-token:auditor",
      status: 200,
      code: "OK",
    });
  });

  test("receives errors before the first response", async () => {
    const served = await start();
    const rejected = await failure(open(served, { startSeq: -1n, filter: "invalid" }, { "x-request-id": "invalid" }));
    expect(rejected.code).toBe("INVALID_ARGUMENT");
    expect(rejected.message).toMatch(/start_seq: .*; filter: is invalid/);
    expect(await served.line("invalid")).toMatchObject({ rpc: RPC, code: "INVALID_ARGUMENT" });
    served.source.fail(new KeyholdError("API_KEY_NOT_FOUND", "there is none"));
    expect(await failure(open(served))).toEqual({ code: "NOT_FOUND", message: "there is none" });
    served.caller.scopes = ["keyhold:verify"];
    expect((await failure(open(served))).code).toBe("PERMISSION_DENIED");
    served.caller.isValid = false;
    expect((await failure(open(served))).code).toBe("UNAUTHENTICATED");
    expect(served.source.signals).toHaveLength(1);
  });

  test("receives an error after a response, whose cause is logged", async () => {
    const served = await start();
    const responses = open(served, {}, { "x-request-id": "broken" });
    served.source.push(event(1));
    await take(responses, 1);
    served.source.fail(new Error("a bug"));
    expect(await failure(responses)).toEqual({ code: "INTERNAL", message: "internal error" });
    expect(await served.line("broken")).toMatchObject({ code: "INTERNAL" });
    expect(served.log().filter(({ msg }) => msg === "fault")).toMatchObject([{ err: { message: "a bug" }, rpc: RPC }]);
  });

  test.each(
    table([
      ["is revoked", "UNAUTHENTICATED", { isValid: false }],
      ["loses its scope", "PERMISSION_DENIED", { scopes: ["keyhold:verify"] }],
    ] as const),
  )("receives nothing more after its token %s", async (_change, code, change) => {
    for (const response of [event(2), heartbeat(2)]) {
      const served = await start();
      const responses = open(served);
      served.source.push(event(1));
      await take(responses, 1);
      Object.assign(served.caller, change);
      served.source.push(response);
      expect((await failure(responses)).code).toBe(code);
      expect(served.source.returned).toBe(1);
    }
  });

  test("ends the stream by disconnecting, while the stream waits", async () => {
    const served = await start();
    const leaving = new AbortController();
    const responses = open(served, {}, { "x-request-id": "left" }, { signal: leaving.signal });
    served.source.push(event(1));
    await take(responses, 1);
    const read = failure(responses);
    leaving.abort();
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
    expect(served.source.signals[0]?.aborted).toBe(true);
    expect(await served.line("left")).toMatchObject({ rpc: RPC, code: "CANCELLED" });
    await read;
    expect(served.log().filter(({ level }) => level > 30)).toEqual([]);
  });

  test("ends the stream by disconnecting, before the first response", async () => {
    const served = await start();
    const leaving = new AbortController();
    const read = failure(open(served, {}, {}, { signal: leaving.signal }));
    await vi.waitFor(() => expect(served.source.signals).toHaveLength(1));
    await tick();
    leaving.abort();
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
    await read;
    expect(served.log().filter(({ level }) => level > 30)).toEqual([]);
  });

  test("is read ahead of no more than the connection buffers, and may disconnect then", async () => {
    const served = await start();
    const count = 3_000;
    // It would be small if it could be compressed.
    const reason = randomBytes(49_152).toString("base64");
    for (let seq = 0; seq < count; seq++) served.source.push(event(seq, reason));
    const leaving = new AbortController();
    const responses = open(served, {}, {}, { signal: leaving.signal });
    await take(responses, 1);
    let before = -1;
    while (served.source.pulled > before) {
      before = served.source.pulled;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(before).toBeLessThan(count / 4);
    leaving.abort();
    await responses.return().catch(() => undefined);
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
  });

  test("receives UNAVAILABLE from a server that stops", async () => {
    const served = await start();
    const responses = open(served, {}, { "x-request-id": "stopped" });
    served.source.push(event(1));
    await take(responses, 1);
    const started = performance.now();
    const stopped = served.server.close();
    expect(await failure(responses)).toEqual({ code: "UNAVAILABLE", message: "the server is stopping" });
    await stopped;
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(served.source.returned).toBe(1);
    expect(await served.line("stopped")).toMatchObject({ code: "UNAVAILABLE" });
    expect(served.log().filter(({ level }) => level > 30)).toEqual([]);
  });

  const testOfDeadlines = protocol.hasDeadlines ? test : () => {};
  testOfDeadlines("receives DEADLINE_EXCEEDED", async () => {
    const served = await start();
    const responses = open(served, {}, { "x-request-id": "late" }, { timeoutMs: 500 });
    served.source.push(event(1));
    await take(responses, 1);
    expect((await failure(responses)).code).toBe("DEADLINE_EXCEEDED");
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
  });

  test("takes no share of the concurrency limit while it waits, but opens only below it", async () => {
    const limiter = new ConcurrencyLimiter(2);
    const served = await start({ limiter });
    const leaving = new AbortController();
    served.source.push(event(1));
    const all = Array.from({ length: 5 }, () => open(served, {}, {}, { signal: leaving.signal }));
    await Promise.all(all.map((responses) => take(responses, 1)));
    expect(limiter.units).toBe(0);
    limiter.units = limiter.max;
    const overloaded = { code: "UNAVAILABLE", message: expect.stringContaining("overloaded") };
    expect(await failure(open(served))).toEqual(overloaded);
    served.source.push(event(2));
    for (const responses of all) expect(await take(responses, 1)).toMatchObject([{ seq: 2 }]);
    limiter.units = 0;
    leaving.abort();
    await Promise.all(all.map(failure));
  });
});

describe("a client that neither reads nor ends the call itself", () => {
  /** Opens a stream over HTTP/2 itself. It is not read until the caller does. */
  const openRaw = (url: string, headers: Record<string, string> = {}) => {
    const session = connect(url);
    onTestFinished(() => session.destroy());
    const fields = { "content-type": "application/grpc", te: "trailers", ...AUTHORIZED, ...headers };
    const stream = session.request({ ":method": "POST", ":path": `/${RPC}`, ...fields });
    return stream.end(Buffer.alloc(5));
  };

  /** Reads the rest, and returns the status in the trailers. */
  const statusOf = async (stream: ClientHttp2Stream) => {
    const trailers = once(stream, "trailers");
    stream.resume();
    const [fields] = await trailers;
    return fields["grpc-status"];
  };

  test.each(
    table([
      ["waits for a response", 1],
      ["is blocked", 100],
    ] as const),
  )("has a deadline, while it %s", async (_state, count) => {
    const served = await start();
    for (let seq = 0; seq < count; seq++) served.source.push(event(seq, "x".repeat(65_536)));
    const stream = openRaw(served.url, { "grpc-timeout": "300m", "x-request-id": "late" });
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
    expect(await statusOf(stream)).toBe("4");
    expect(await served.line("late")).toMatchObject({ code: "DEADLINE_EXCEEDED" });
  });

  test("receives UNAVAILABLE from a server that stops, which first releases what the stream holds", async () => {
    const served = await start();
    for (let seq = 0; seq < 100; seq++) served.source.push(event(seq, "x".repeat(65_536)));
    const stream = openRaw(served.url);
    await vi.waitFor(() => expect(served.source.pulled).toBeGreaterThan(0));
    const stopped = served.server.close();
    await vi.waitFor(() => expect(served.source.returned).toBe(1));
    expect(await statusOf(stream)).toBe("14");
    await stopped;
  });
});

test("a stream ends although its implementation does not", async () => {
  const served = await start();
  served.source.ignoresSignal = true;
  served.source.push(event(1));
  const responses = WATCH_PROTOCOLS.map(({ watch }) => watch(served.url, {}, { headers: AUTHORIZED }));
  await Promise.all(responses.map((one) => take(one, 1)));
  const stopped = served.server.close();
  for (const one of responses) expect((await failure(one)).code).toBe("UNAVAILABLE");
  await stopped;
});

test("a stream is a span, which has the code of its end", async () => {
  const ended: string[] = [];
  const begin = (rpc: string) => ({
    traceId: "0",
    run: <T>(work: () => T) => work(),
    end: (code: string, protocol: string) => void ended.push(`${rpc} ${protocol} ${code}`),
  });
  const tracing = { begin, statement: async <T>(_name: string, work: () => Promise<T>) => work(), lookup() {} };
  const served = await start({ tracing: { ...tracing, close: async () => {} } });
  served.source.push(event(1));
  served.source.fail(new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable"));
  for (const { watch } of WATCH_PROTOCOLS) await failure(watch(served.url, {}, { headers: AUTHORIZED }));
  const protocols = ["grpc", "grpc", "grpc_web", "grpc_web", "connect", "connect", "rest", "rest"];
  await vi.waitFor(() => expect(ended).toEqual(protocols.map((protocol) => `${RPC} ${protocol} UNAVAILABLE`)));
});
