import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { seeded } from "./seeded.ts";
import { TcpProxy, withoutNotifications } from "./tcp-proxy.ts";

let server: Server;
let proxy: TcpProxy;
let client: Socket;
let accepted: Socket;

const portOf = (listening: Server) => (listening.address() as AddressInfo).port;

async function connectClient(filter?: typeof withoutNotifications) {
  const options = { seeded: seeded(1), ...(filter && { filter }) };
  proxy = await TcpProxy.start(`tcp://127.0.0.1:${portOf(server)}`, options);
  client = connect(proxy.port, "127.0.0.1");
  [accepted] = await once(server, "connection");
  for (const socket of [client, accepted]) socket.on("error", () => {});
}

beforeEach(async () => {
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  await connectClient();
});

afterEach(async () => {
  client.destroy();
  accepted.destroy();
  await proxy.close();
  server.close();
});

/** Resolves with whether the connection was reset. */
function closeOf(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => socket.once("close", resolve));
}

async function received(socket: Socket, count: number): Promise<string> {
  let text = "";
  while (text.length < count) text += String((await once(socket, "data"))[0]);
  return text;
}

test("preserves the order of bytes with jitter", async () => {
  proxy.jitter = 5;
  const digits = Array.from({ length: 50 }, (_, n) => String(n % 10)).join("");
  const all = received(accepted, 50);
  for (const digit of digits) {
    client.write(digit);
    await new Promise(setImmediate);
  }
  expect(await all).toBe(digits);
});

test("delivers data queued while frozen, even after the sender has closed", async () => {
  client.write("before ");
  expect(await received(accepted, 7)).toBe("before ");
  proxy.freeze("all");
  client.end("late");
  await once(client, "finish");
  const late = received(accepted, 4);
  proxy.thaw();
  expect(await late).toBe("late");
});

test("freezing responses passes requests on", async () => {
  proxy.freeze();
  const request = received(accepted, 3);
  client.write("ask");
  expect(await request).toBe("ask");
  let isAnswered = false;
  client.once("data", () => {
    isAnswered = true;
  });
  accepted.write("answer");
  client.write("more");
  expect(await received(accepted, 4)).toBe("more");
  expect(isAnswered).toBe(false);
  const answer = received(client, 6);
  proxy.thaw();
  expect(await answer).toBe("answer");
});

test("thaw can reset the connections instead", async () => {
  proxy.freeze("all");
  const closed = closeOf(client);
  proxy.thaw("reset");
  expect(await closed).toBe(true);
});

test("resets one connection by the port that the server sees", async () => {
  const closed = closeOf(client);
  expect([proxy.resetFrom(1), proxy.resetFrom(accepted.remotePort ?? 0)]).toEqual([false, true]);
  await closed;
});

test.each([
  ["fin", false],
  ["rst", true],
] as const)("cuts connections by %s", async (how, hadError) => {
  expect(proxy.connections()).toBe(1);
  client.resume();
  const closed = closeOf(client);
  proxy.cutOne(how, 1);
  expect(proxy.connections()).toBe(1);
  proxy.cut(how);
  expect(await closed).toBe(hadError);
  expect(proxy.connections()).toBe(0);
});

test("refuses connections while down", async () => {
  await proxy.down();
  const [refused] = await once(connect(proxy.port, "127.0.0.1"), "error");
  expect(refused).toMatchObject({ code: "ECONNREFUSED" });
  await proxy.up();
  const again = connect(proxy.port, "127.0.0.1");
  await once(again, "connect");
  again.destroy();
});

test("redirects new connections", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  proxy.redirect(portOf(other));
  const redirected = connect(proxy.port, "127.0.0.1");
  const [socket] = await once(other, "connection");
  const request = received(socket, 2);
  redirected.write("hi");
  expect(await request).toBe("hi");
  redirected.destroy();
  socket.destroy();
  other.close();
});

describe("without notifications", () => {
  const message = (type: string, body: string) => {
    const bytes = Buffer.alloc(5 + body.length, `${type}....${body}`);
    bytes.writeUInt32BE(4 + body.length, 1);
    return bytes;
  };

  test("drops notifications however the messages are split", async () => {
    await connectClient(withoutNotifications);
    const responses = Buffer.concat([message("D", "row"), message("A", "news"), message("Z", "I")]);
    const kept = received(client, 14);
    for (const byte of responses) accepted.write(Buffer.from([byte]));
    expect(await kept).toBe(String(Buffer.concat([message("D", "row"), message("Z", "I")])));
  });
});
