import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { table } from "../../support/conformance.ts";
import { PREFACE } from "../../support/http2-wire.ts";
import { type EchoOptions, startEcho } from "../fast-path/http1/support.ts";
import { closed, http2Client, http2Request, rawClient, until } from "./support.ts";

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
