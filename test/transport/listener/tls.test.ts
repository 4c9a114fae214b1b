import { once } from "node:events";
import { request } from "node:https";
import { connect as connectTcp, createServer as createTcpServer } from "node:net";
import { buffer } from "node:stream/consumers";
import { connect } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { listenLocally } from "../../support/listen.ts";
import {
  certificate,
  closed,
  connections,
  echo,
  greet,
  http2Client,
  http2Request,
  listen,
  type RawClient,
  rawClient,
} from "./support.ts";

const localhost = certificate("localhost");
const renewed = certificate("renewed");

async function https(number: number, ca: string, body?: Uint8Array): Promise<Buffer> {
  const outgoing = request({ port: number, host: "127.0.0.1", ca, agent: false, method: body ? "POST" : "GET" }).end(
    body,
  );
  const [response] = await once(outgoing, "response");
  return buffer(response);
}

/** Returns the protocol that the server selected. */
async function handshake(number: number, ALPNProtocols: string[] | undefined): Promise<string | false | null> {
  const socket = connect({ port: number, host: "127.0.0.1", ca: localhost.cert, ALPNProtocols });
  await once(socket, "secureConnect");
  const { alpnProtocol } = socket;
  socket.destroy();
  return alpnProtocol;
}

describe("one port with TLS", () => {
  it("speaks HTTP/1.1 and HTTP/2", async () => {
    const { number } = await listen(greet, { certificate: localhost });
    expect((await https(number, localhost.cert)).toString()).toBe("1.1 GET 127.0.0.1");
    const http2 = await http2Request(http2Client(number, localhost), { ":path": "/" });
    expect(http2.body.toString()).toBe("2.0 GET 127.0.0.1");
  });

  it("carries large bodies in both directions over both protocols", async () => {
    const { number } = await listen(echo, { certificate: localhost });
    const body = Buffer.alloc(4 << 20, "keyhold ");
    expect((await https(number, localhost.cert, body)).equals(body)).toBe(true);
    const http2 = await http2Request(http2Client(number, localhost), { ":path": "/", ":method": "POST" }, body);
    expect(http2.body.equals(body)).toBe(true);
  });

  it("prefers HTTP/2, and speaks HTTP/1.1 to a client without ALPN", async () => {
    const { number } = await listen(greet, { certificate: localhost });
    expect(await handshake(number, ["http/1.1", "h2"])).toBe("h2");
    expect(await handshake(number, ["http/1.1"])).toBe("http/1.1");
    expect(await handshake(number, undefined)).toBe(false);
    await expect(handshake(number, ["spdy/3"])).rejects.toThrow("no application protocol");
  });

  it("marks the connection as encrypted for the listener", async () => {
    const { number } = await listen((incoming, response) => response.end(`${"encrypted" in incoming.socket}`), {
      certificate: localhost,
    });
    expect((await https(number, localhost.cert)).toString()).toBe("true");
  });

  it("refuses a certificate with the key of another", () => {
    const mismatched = { certificate: { cert: localhost.cert, key: renewed.key }, limits: defaultLimits };
    expect(() => new ListenerServer(mismatched, greet)).toThrow("key values mismatch");
  });
});

describe("a TLS connection", () => {
  it.for([["h2"], ["http/1.1"]])("of %s closes when the client ends it", async ([protocol = ""]) => {
    const { server, number } = await listen(greet, { certificate: localhost });
    const accepted = once(server, "connection");
    const options = { port: number, host: "127.0.0.1", ca: localhost.cert, allowHalfOpen: true };
    const socket = connect({ ...options, ALPNProtocols: [protocol] });
    const [serverSocket] = await accepted;
    await once(socket, "secureConnect");
    socket.end();
    await closed(serverSocket);
  });
});

describe("a TLS handshake", () => {
  it.for([["nothing"], ["half a record", Buffer.of(0x16, 0x03, 0x01)]] as const)(
    "that stops at %s is dropped after its timeout",
    async ([, bytes]) => {
      const { server } = await listen(greet, { certificate: localhost, limits: { sniffTimeout: 50 } });
      const client = await rawClient(server);
      if (bytes) await client.send(bytes);
      await closed(client.server);
      expect(await connections(server)).toBe(0);
    },
  );

  it.for([
    ["ends", (client: RawClient) => client.socket.end()],
    ["resets", (client: RawClient) => client.socket.resetAndDestroy()],
  ] as const)("that the client %s leaks nothing", async ([, leave]) => {
    const { server } = await listen(greet, { certificate: localhost });
    for (const bytes of ["", Buffer.of(0x16, 0x03, 0x01)]) {
      const client = await rawClient(server, { allowHalfOpen: true });
      await client.send(bytes);
      const gone = closed(client.server);
      leave(client);
      await gone;
    }
    expect(await connections(server)).toBe(0);
  });

  it("that fails leaks nothing", async () => {
    const { server } = await listen(greet, { certificate: localhost });
    const client = await rawClient(server);
    const gone = closed(client.server);
    await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await gone;
    expect(await connections(server)).toBe(0);
  });

  it("in progress when the port closes is dropped; complete ones finish their requests", async () => {
    const { server, number } = await listen((_, response) => server.close(() => {}) && response.end("finished"), {
      certificate: localhost,
    });
    const undecided = await rawClient(server);
    await undecided.send(Buffer.of(0x16, 0x03, 0x01));
    const over = once(server, "close");
    const http2 = await http2Request(http2Client(number, localhost), { ":path": "/" });
    expect(http2.body.toString()).toBe("finished");
    await Promise.all([over, closed(undecided.socket)]);
  });
});

/** A proxy that holds the clients' bytes from `hold` until that many TLS records have arrived. */
async function holdingProxy(number: number) {
  let held: Buffer | undefined;
  let wanted = 0;
  const server = createTcpServer((client) => {
    const upstream = connectTcp(number, "127.0.0.1").on("error", () => {});
    upstream.pipe(client).on("error", () => {});
    client.on("data", (bytes: Buffer) => {
      held = held && Buffer.concat([held, bytes]);
      if (held === undefined) upstream.write(bytes);
      else if (countRecords(held) === wanted) upstream.write(held);
    });
  });
  onTestFinished(() => void server.close());
  const hold = (records: number) => {
    held = Buffer.alloc(0);
    wanted = records;
  };
  return { number: await listenLocally(server), hold };
}

/** RFC 8446 §5.1: a record has a type, a version, and a length of two bytes. */
function countRecords(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at + 5 <= bytes.length; count++) {
    at += 5 + bytes.readUInt16BE(at + 3);
    if (at > bytes.length) break;
  }
  return count;
}

it("serves a request in two TLS records while a large response is still being written", async () => {
  const { number } = await listen(
    (request, response) => {
      if (request.method === "GET") response.end(Buffer.alloc(8_000_000, "a"));
      else echo(request, response);
    },
    { certificate: localhost },
  );
  const proxy = await holdingProxy(number);
  const socket = connect({ port: proxy.number, host: "127.0.0.1", ca: localhost.cert });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  // The response has begun, and the client stops reading for now.
  await once(socket, "readable");
  proxy.hold(2);
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
  socket.write("hello");
  const text = (await buffer(socket)).toString("latin1");
  expect(text).not.toContain("400 Bad Request");
  expect(text).toContain("hello");
});
