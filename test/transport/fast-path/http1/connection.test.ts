import { once } from "node:events";
import { request } from "node:https";
import { connect } from "node:net";
import { json } from "node:stream/consumers";
import { expect, test } from "vitest";
import { certificate, closed, type RawClient, rawClient, stop, until } from "../../listener/support.ts";
import { type Accepted, answer, type EchoServer, startEcho } from "./support.ts";

function requestFor(target: string, body = "", lines = ""): string {
  return `POST ${target} HTTP/1.1\r\nhost: a\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${lines}\r\n${body}`;
}

/** Returns the answered targets in order. */
function targets({ text }: RawClient): string[] {
  return [...text.matchAll(/"target":"([^"]*)"/g)].map(([, target = ""]) => target);
}

async function clientOf({ server }: EchoServer): Promise<RawClient> {
  return rawClient(server);
}

/** A client whose request for /wait has arrived. */
async function waitingClient(server: EchoServer): Promise<{ client: RawClient; message: Accepted }> {
  const client = await clientOf(server);
  const waiting = once(server.waiting, "waiting");
  client.socket.write(requestFor("/wait"));
  const [message] = await waiting;
  return { client, message };
}

test("the interceptor keeps a connection until it declines a request", async () => {
  const server = await startEcho();
  const client = await clientOf(server);
  for (const target of ["/1", "/2", "/node", "/3"]) {
    await client.send(requestFor(target, "x"));
    await client.receive(`"${target}"`);
  }
  expect(server.counts).toEqual({ front: 2, node: 2 });
});

test("the interceptor waits for a message in a few segments", async () => {
  const server = await startEcho();
  const client = await clientOf(server);
  const text = requestFor("/1", "0123456789");
  await client.send(text.slice(0, 10), text.slice(10, -10), text.slice(-10, -5), text.slice(-5));
  await client.receive('"body":"0123456789"');
  expect(server.counts).toEqual({ front: 1, node: 0 });
});

test.each([
  ["in many segments", [...requestFor("/1", "0123456789")]],
  ["with a body above the buffer limit", [requestFor("/1", "a".repeat(2 ** 17 + 1))]],
])("Node serves a message %s", async (_, pieces) => {
  const server = await startEcho();
  const client = await clientOf(server);
  for (const piece of pieces) client.socket.write(piece);
  if (pieces.length > 1) await client.send("");
  await client.receive("HTTP/1.1 200 OK");
  expect(server.counts.front + server.counts.node).toBe(1);
});

test("Node refuses an incomplete message after its timeout", async () => {
  const server = await startEcho({ limits: { headersTimeout: 200, requestTimeout: 200 } });
  const client = await clientOf(server);
  await client.send(requestFor("/1", "abc").slice(0, -1));
  await closed(client.socket);
  expect(client.text).toContain("HTTP/1.1 400");
});

test("an idle connection is closed after its timeout", async () => {
  const server = await startEcho({ limits: { keepAliveTimeout: 50 } });
  const client = await clientOf(server);
  await client.send(requestFor("/1"));
  await closed(client.socket);
  expect(targets(client)).toEqual(["/1"]);
});

test("pipelined requests are answered in order, one after the other", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  await client.send(requestFor("/1") + requestFor("/node") + requestFor("/2"));
  expect(server.counts).toEqual({ front: 1, node: 0 });
  answer(message);
  await client.receive('"/2"');
  expect(targets(client)).toEqual(["/wait", "/1", "/node", "/2"]);
});

test("a client that pipelines too much is not read from until its responses are sent", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  const [one, count] = [requestFor("/1", "a".repeat(10_000)), 100];
  client.socket.write(one.repeat(count));
  await until(() => client.server.isPaused());
  expect(client.server.bytesRead).toBeLessThan(one.length * 50);
  answer(message);
  await until(() => targets(client).length === count + 1);
});

test("responses pause while the client does not read", async () => {
  const server = await startEcho();
  const client = await clientOf(server);
  const [one, count] = [requestFor("/1", "a".repeat(50_000)), 400];
  client.socket.pause().write(one.repeat(count));
  await until(() => client.server.isPaused());
  expect(server.counts.front).toBeLessThan(count);
  client.socket.removeAllListeners("data").resume();
  await until(() => server.counts.front === count);
});

test("a call whose client has disconnected is cancelled without a response", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  client.socket.resetAndDestroy();
  await message.cancelled;
  answer(message);
  await closed(client.server);
});

test("a client that has closed its sending side gets its response", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  client.socket.end(requestFor("/1"));
  answer(message);
  await closed(client.socket);
  expect(targets(client)).toEqual(["/wait", "/1"]);
});

test("a header value with a line break is not sent, and the connection ends", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  const headers = ["x-a", "1\r\nset-cookie: a"];
  message.respond({ status: 200, headers, body: "" });
  await closed(client.socket);
  expect(client.text).toBe("");
});

test("bytes and text beyond ASCII arrive unchanged", async () => {
  const server = await startEcho();
  const { client, message } = await waitingClient(server);
  message.respond({ status: 200, headers: ["content-length", "2"], body: "\u00e9" });
  await client.receive("\r\n\r\n\u00c3\u00a9");
  const second = once(server.waiting, "waiting");
  client.socket.write(requestFor("/wait"));
  const [next] = await second;
  next.respond({ status: 404, headers: ["content-length", "2"], body: Uint8Array.of(0xff, 0) });
  await client.receive("\r\n\r\n\u00ff\0");
  expect(client.text).toContain("HTTP/1.1 404 Not Found\r\n");
});

test("closing ends idle connections and answers requests in flight or partly received", async () => {
  const server = await startEcho();
  const resting = await clientOf(server);
  await resting.send(requestFor("/1"));
  await resting.receive('"/1"');
  const begun = await clientOf(server);
  await begun.send(requestFor("/2", "abc").slice(0, -1));
  const { client, message } = await waitingClient(server);
  const over = new Promise((resolve) => server.server.close(resolve));
  await closed(resting.socket);
  await begun.send("c");
  answer(message);
  await Promise.all([closed(client.socket), closed(begun.socket), over]);
  for (const { text } of [client, begun]) expect(text).toContain("Connection: close\r\n\r\n{");
  expect(server.counts).toEqual({ front: 3, node: 0 });
});

test("a connection without any bytes does not delay closing", async () => {
  const server = await startEcho();
  const socket = connect(server.port, "127.0.0.1");
  await once(server.server, "connection");
  await stop(server.server);
  await closed(socket);
});

test("the interceptor works with TLS", async () => {
  const localhost = certificate("localhost");
  const server = await startEcho({ certificate: localhost });
  const options = { port: server.port, host: "127.0.0.1", servername: "localhost", ca: localhost.cert, method: "POST" };
  const [response] = await once(request({ ...options, path: "/1" }).end("abc"), "response");
  expect(await json(response)).toMatchObject({ target: "/1", body: "abc" });
});
