import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { EventSource } from "eventsource";
import { expect, onTestFinished, test, vi } from "vitest";
import { KeyholdError } from "../../../src/domain/errors.ts";
import { table } from "../../support/conformance.ts";
import { operator } from "../../support/principal.ts";
import { watchPath } from "../../support/protocols/watch.ts";
import { AUTHORIZED, event, heartbeat, RPC, start } from "../stream-server.ts";

const PATH = watchPath();

test("each event has the JSON of the response and its token as the id, a heartbeat the id alone", async () => {
  const { source, url } = await start();
  source.push(event(3), heartbeat(5), { auditEvent: {} }, {});
  source.end();
  const response = await fetch(url + PATH, { headers: AUTHORIZED });
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  expect(response.headers.get("x-request-id")).toMatch(/./);
  const [first = "", ...others] = (await response.text()).split("\n\n");
  expect(first).toMatch(/^id: after-3\ndata: \{[^\n]*\}$/);
  const data = JSON.parse(first.slice(first.indexOf("{")));
  expect(data).toMatchObject({ audit_event: { seq: "3", key_id: "", changes: [] }, resume_token: "after-3" });
  expect(others).toEqual(["id: after-5\n: heartbeat", expect.stringMatching(/^data: \{.*\}$/), ": heartbeat", ""]);
});

test("a later error is an event with the JSON of the error", async () => {
  const { source, url } = await start();
  source.push(event(3));
  source.fail(new KeyholdError("API_KEY_NOT_FOUND", "there\nis none"));
  const text = await (await fetch(url + PATH, { headers: AUTHORIZED })).text();
  const [, data = ""] = /\n\nevent: error\ndata: (\{.*\})\n\n$/.exec(text) ?? [];
  const details = [expect.objectContaining({ reason: "API_KEY_NOT_FOUND" })];
  expect(JSON.parse(data)).toEqual({ error: { code: 404, status: "NOT_FOUND", message: "there\nis none", details } });
});

test("an error before the first response is a REST error", async () => {
  const { url } = await start();
  const answers = [
    ["start_seq=-1&filter=invalid", AUTHORIZED, 400, ["start_seq", "filter"]],
    ["start=1", AUTHORIZED, 400, ["start"]],
    ["", {}, 401, undefined],
  ] as const;
  for (const [query, headers, status, fields] of answers) {
    const response = await fetch(`${url}${PATH}${query}`, { headers });
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const { error } = (await response.json()) as { error: { details: { field_violations?: { field: string }[] }[] } };
    expect(error.details[1]?.field_violations?.map(({ field }) => field)).toEqual(fields);
  }
});

test("Last-Event-ID is the resume_token, unless the query has one", async () => {
  const { source, url } = await start();
  source.end();
  const headers = { ...AUTHORIZED, "last-event-id": "after-7" };
  for (const query of ["", "start_seq=2", "resume_token=after-8"]) {
    await (await fetch(`${url}${PATH}${query}`, { headers })).text();
  }
  expect(source.requests).toMatchObject([
    { resumeToken: "after-7" },
    { resumeToken: "after-7", startSeq: 2n },
    { resumeToken: "after-8" },
  ]);
});

test("HEAD has the response without events, and ends the stream", async () => {
  const { source, url, line } = await start();
  source.push(event(1));
  const init = { method: "HEAD", headers: { ...AUTHORIZED, "x-request-id": "head" } };
  const response = await fetch(url + PATH, init);
  expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
    ...[200, "text/event-stream", ""],
  ]);
  expect(await line("head")).toMatchObject({ rpc: RPC, code: "OK" });
  expect(source.returned).toBe(1);
});

test("other methods are not allowed, and pages of other origins may not read it", async () => {
  const { source, url } = await start({ corsOrigins: ["https://console.example.com"] });
  source.end();
  const rejected = await fetch(url + PATH, { method: "POST", headers: AUTHORIZED });
  expect([rejected.status, rejected.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  for (const [origin, allowed] of [
    ["https://console.example.com", "https://console.example.com"],
    ["https://other.example.com", null],
  ] as const) {
    const asked = { "access-control-request-method": "GET", "access-control-request-headers": "last-event-id" };
    const preflight = await fetch(url + PATH, { method: "OPTIONS", headers: { origin, ...asked } });
    expect(preflight.headers.get("access-control-allow-origin")).toBe(allowed);
    if (allowed !== null) expect(preflight.headers.get("access-control-allow-headers")).toMatch(/last-event-id/i);
    const response = await fetch(url + PATH, { headers: { origin, ...AUTHORIZED } });
    expect(response.headers.get("access-control-allow-origin")).toBe(allowed);
    await response.text();
  }
});

/** Sends the request of a stream over HTTP/1.1, whose connection a test ends. */
function openSocket(url: string, id: string): Socket {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  const fields = [`Host: ${host}`, `Authorization: ${AUTHORIZED.authorization}`, `X-Request-Id: ${id}`];
  socket.write(`GET ${PATH} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
  return socket;
}

test("a client that ends its side of an HTTP/1.1 connection has disconnected", async () => {
  const { source, url, line } = await start();
  source.push(event(1));
  const socket = openSocket(url, "half");
  await once(socket, "data");
  socket.end();
  await vi.waitFor(() => expect(source.returned).toBe(1));
  expect(await line("half")).toMatchObject({ code: "CANCELLED" });
});

test("a client that ends its side of an HTTP/1.1 connection before it is authorized has disconnected", async () => {
  const hasEnded = Promise.withResolvers<void>();
  const guard = async () => {
    await hasEnded.promise;
    return operator;
  };
  const { source, server, url, line } = await start({ guard });
  server.server.on("connection", (socket: Socket) => socket.on("end", hasEnded.resolve));
  openSocket(url, "early").end();
  expect(await line("early")).toMatchObject({ code: "CANCELLED" });
  expect(source.pulled).toBe(0);
});

/** Reads by a library, with the credential that a browser cannot send. Emits no "error" that nothing listens to. */
function openEventSource(url: string) {
  const responses: Response[] = [];
  const source = new EventSource(url + PATH, {
    fetch: async (input, init) => {
      const response = await fetch(input, { ...init, headers: { ...init.headers, ...AUTHORIZED } });
      responses.push(response);
      return response;
    },
  });
  onTestFinished(() => source.close());
  const messages: MessageEvent[] = [];
  source.addEventListener("message", (message) => messages.push(message));
  const errors: Event[] = [];
  source.addEventListener("error", (error) => errors.push(error));
  const received = (count: number) => vi.waitFor(() => expect(messages).toHaveLength(count), 10_000);
  return { source, responses, messages, errors, received };
}

test("an EventSource receives events, and resumes by the id of the last one", async () => {
  const { source, url } = await start();
  const reader = openEventSource(url);
  source.push(event(1), heartbeat(2));
  await reader.received(1);
  source.push(event(3));
  await reader.received(2);
  expect(reader.messages.map(({ data, lastEventId }) => [JSON.parse(data).audit_event.seq, lastEventId])).toEqual([
    ["1", "after-1"],
    ["3", "after-3"],
  ]);
  source.fail(new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable"));
  await vi.waitFor(() => expect(source.requests).toHaveLength(2), 10_000);
  expect(source.requests[1]).toMatchObject({ resumeToken: "after-3" });
  const [error] = reader.errors;
  expect(error).toMatchObject({ data: expect.stringContaining('"status":"UNAVAILABLE"') });
});

test.each(table(["revoked", "rejected"]))("an EventSource whose token is %s ends", async (when) => {
  const { source, caller, url } = await start();
  caller.isValid = when === "revoked";
  const reader = openEventSource(url);
  if (when === "revoked") {
    source.push(event(1));
    await reader.received(1);
    caller.isValid = false;
    source.push(event(2));
  }
  await vi.waitFor(() => expect(reader.source.readyState).toBe(EventSource.CLOSED), 10_000);
  expect(reader.responses.at(-1)?.status).toBe(401);
  expect(reader.messages).toHaveLength(when === "revoked" ? 1 : 0);
});
