import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { Client, credentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import { table } from "../../support/conformance.ts";
import { Frame, frames, getFrame, PREFACE } from "../../support/http2-wire.ts";
import { type EchoOptions, startEcho } from "../fast-path/http1/support.ts";
import { closed, HELLO, holding, http2Client, http2Request, listen, rawClient, until } from "./support.ts";

/** Longer than any of these tests, so that it ends nothing in them. */
const LONG = 9_000;

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

const WAYS = table<readonly [string, EchoOptions]>([
  ["the interceptor", { front: true }],
  ["Node", { front: false }],
]);

const persistence = (text: string) => text.match(/Connection: .*/g);

test.each(WAYS)(
  "an idle connection of %s may send one more request when the port closes, and then ends",
  async (_, way) => {
    const { server } = await startEcho({ ...way, limits: { drainDelay: LONG } });
    const client = await rawClient(server);
    await client.send(GET);
    await client.receive('"method"');
    const over = once(server, "close");
    server.close();
    await until(() => !server.listening);
    await client.send(GET);
    await Promise.all([closed(client.socket), over]);
    expect(persistence(client.text)).toEqual(["Connection: keep-alive", "Connection: close"]);
  },
);

test.each(WAYS)("a connection of %s without any bytes may still send its request", async (_, way) => {
  const { server } = await startEcho({ ...way, limits: { drainDelay: LONG } });
  const client = await rawClient(server);
  const over = once(server, "close");
  server.close();
  await until(() => !server.listening);
  await client.send(GET);
  await Promise.all([closed(client.socket), over]);
  expect(persistence(client.text)).toEqual(["Connection: close"]);
});

test("connections in the accept queue when the port closes are served, and no others are accepted", async () => {
  const { server, port } = await startEcho({ limits: { drainDelay: LONG } });
  const answers = Array.from({ length: 20 }, () => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return text(socket);
  });
  // In the same tick of the event loop: the kernel has opened them, and the server has not accepted them.
  const over = once(server, "close");
  server.close();
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 200 /);
  await over;
  await expect(once(connect({ port, host: "127.0.0.1" }), "connect")).rejects.toThrow("ECONNREFUSED");
});

test.each(WAYS)("an idle connection of %s ends after the drain delay", async (_, way) => {
  const { server } = await startEcho({ ...way, limits: { drainDelay: 50, closeTimeout: LONG } });
  const [resting, silent, half] = [await rawClient(server), await rawClient(server), await rawClient(server)];
  await resting.send(GET);
  await half.send(PREFACE.subarray(0, 10));
  const over = once(server, "close");
  server.close();
  await Promise.all([...[resting, silent, half].map(({ socket }) => closed(socket)), over]);
});

test.each(WAYS)("a request that has arrived when the drain delay ends is served by %s", async (_, way) => {
  const { server } = await startEcho({ ...way, limits: { drainDelay: 20, closeTimeout: LONG } });
  const [resting, silent] = [await rawClient(server), await rawClient(server)];
  await resting.send(GET);
  await resting.receive('"method"');
  const over = once(server, "close");
  server.close();
  await until(() => !server.listening);
  for (const { socket } of [resting, silent]) socket.write(GET);
  // As on a busy machine: the event loop runs due timers before it reads what has arrived.
  const end = performance.now() + 40;
  while (performance.now() < end);
  await Promise.all([closed(resting.socket), closed(silent.socket), over]);
  expect(persistence(resting.text)).toEqual(["Connection: keep-alive", "Connection: close"]);
  expect(persistence(silent.text)).toEqual(["Connection: close"]);
});

test("an idle HTTP/2 session may send one more request when the port closes, and then gets GOAWAY", async () => {
  const { server, port } = await startEcho({ limits: { drainDelay: LONG } });
  const session = http2Client(port);
  expect(await http2Request(session, { ":path": "/" })).toMatchObject({ status: 200 });
  const over = once(server, "close");
  server.close();
  await until(() => !server.listening);
  const goaway = once(session, "goaway");
  expect(await http2Request(session, { ":path": "/" })).toMatchObject({ status: 200 });
  expect((await goaway).slice(0, 2)).toEqual([0, 3]);
  await over;
});

test("an HTTP/2 session that begins during the drain delay is served, and then gets GOAWAY", async () => {
  const { server, port } = await startEcho({ front: false, limits: { drainDelay: LONG } });
  const session = http2Client(port);

  await once(server, "connection");
  const over = once(server, "close");
  server.close();
  const goaway = once(session, "goaway");
  expect(await http2Request(session, { ":path": "/" })).toMatchObject({ status: 200 });
  expect((await goaway).slice(0, 2)).toEqual([0, 1]);
  await over;
});

test("GOAWAY waits for overlapping streams, and precedes the end of the last one", async () => {
  const { held, listener } = holding();
  const { server } = await listen(listener, { limits: { drainDelay: 1, goawayTimeout: LONG, closeTimeout: LONG } });
  const [client, idle] = [await rawClient(server), await rawClient(server)];
  await idle.send(HELLO);
  await client.send(HELLO, getFrame(1));
  const over = once(server, "close");
  server.close();
  await closed(idle.socket);
  for (const stream of [3, 5]) {
    await client.send(getFrame(stream));
    await until(() => held.length === 2);
    held.pop()?.end(`answer ${stream}`);
    await client.receive(`answer ${stream}`);
  }
  expect(frames(client.received).some(({ type }) => type === Frame.GOAWAY)).toBe(false);
  await client.send(getFrame(7));
  await until(() => held.length === 2);
  held.shift()?.end("the first");
  await client.receive("the first");
  held.pop()?.end("the last");
  await Promise.all([closed(client.socket), over]);
  const types = frames(client.received).map(({ type }) => type);
  expect(types.indexOf(Frame.GOAWAY)).toBeLessThan(types.lastIndexOf(Frame.DATA));
});

test("a session whose streams always overlap gets GOAWAY nevertheless, in time for its streams to end", async () => {
  const { held, listener } = holding();
  const { server } = await listen(listener, { limits: { drainDelay: 1, goawayTimeout: 50, closeTimeout: LONG } });
  const client = await rawClient(server);
  await client.send(HELLO, getFrame(1));
  const over = once(server, "close");
  server.close();
  await until(() => frames(client.received).some(({ type }) => type === Frame.GOAWAY));
  held.pop()?.end("the end");
  await Promise.all([client.receive("the end"), closed(client.socket), over]);
});

/** Waits until the server has read some keepalive pings of its client, or the connection is closed. */
async function pinged(socket: Socket): Promise<void> {
  const end = socket.bytesRead + 5 * PING_BYTES;
  await until(() => socket.destroyed || socket.bytesRead >= end);
}

const PING_BYTES = 17;

test("grpc-js with keepalive loses no call in flight", async () => {
  const { held, listener } = holding();
  const { server, number } = await listen(listener, { limits: { drainDelay: LONG } });
  const accepted = once(server, "connection");
  const client = new Client(`127.0.0.1:${number}`, credentials.createInsecure(), { "grpc.keepalive_time_ms": 20 });
  onTestFinished(() => client.close());
  const same = (bytes: Buffer) => bytes;
  const call = () =>
    new Promise((resolve, reject) =>
      client.makeUnaryRequest("/a/b", same, same, Buffer.alloc(0), (error, value) =>
        error === null ? resolve(value?.toString()) : reject(error),
      ),
    );
  const answer = (text: string) => {
    const response = held.pop();
    response?.writeHead(200, { "content-type": "application/grpc", trailer: "grpc-status" });
    response?.addTrailers({ "grpc-status": "0" });
    response?.end(Buffer.from(encodeEnvelope(0, Buffer.from(text))));
  };
  const slow = call();
  const [socket] = await accepted;
  await until(() => held.length === 1);
  const over = once(server, "close");
  server.close();
  await until(() => !server.listening);
  const fast = call();
  await until(() => held.length === 2);
  answer("fast");
  expect(await fast).toBe("fast");
  await Promise.race([pinged(socket), slow]);
  answer("slow");
  expect(await slow).toBe("slow");
  await over;
});
