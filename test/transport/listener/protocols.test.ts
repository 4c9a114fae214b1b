import { once } from "node:events";
import { Agent, get, type RequestListener, request, type ServerResponse } from "node:http";
import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { buffer, text } from "node:stream/consumers";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { queryObjects } from "node:v8";
import { describe, expect, it } from "vitest";
import { liftRequestLimit } from "../../../src/transport/listener/http2.ts";
import { Frame, frame, getFrame, PREFACE } from "../../support/http2-wire.ts";
import {
  closed,
  connections,
  echo,
  greet,
  http2Client,
  http2Request,
  listen,
  type RawClient,
  rawClient,
  until,
} from "./support.ts";

const HELLO = Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0)]);

async function expectHttp2Answer(client: RawClient): Promise<void> {
  await client.send(frame(Frame.SETTINGS, 0, 0), getFrame(1));
  await client.receive("2.0 GET 127.0.0.1");
  client.socket.destroy();
}

describe("one port without TLS", () => {
  it("speaks HTTP/1.1 and HTTP/2", async () => {
    const { number } = await listen(greet);
    const [http1] = await once(get({ port: number, host: "127.0.0.1", agent: false }), "response");
    expect(await text(http1)).toBe("1.1 GET 127.0.0.1");
    const http2 = await http2Request(http2Client(number), { ":path": "/" });
    expect(http2.body.toString()).toBe("2.0 GET 127.0.0.1");
  });

  it("rejects methods that Node's parser of HTTP/1.1 does not know over HTTP/2 too, before they reach the listener", async () => {
    const { number } = await listen(() => expect.unreachable());
    for (const [method, expect100] of [["PRI"], ["get"], ["POST2"], ["PRI", { expect: "100-continue" }]] as const) {
      const head = { ":path": "/", ":method": method, ...expect100 };
      const { status, body } = await http2Request(http2Client(number), head);
      expect([status, JSON.parse(body.toString()).error.message]).toEqual([405, expect.stringContaining("DELETE")]);
    }
  });

  it("carries large bodies in both directions over both protocols", async () => {
    const { number } = await listen(echo);
    const body = Buffer.alloc(4 << 20, "keyhold ");
    const outgoing = request({ port: number, host: "127.0.0.1", method: "POST", agent: false }).end(body);
    const [http1] = await once(outgoing, "response");
    expect((await buffer(http1)).equals(body)).toBe(true);
    const http2 = await http2Request(http2Client(number), { ":path": "/", ":method": "POST" }, body);
    expect(http2.body.equals(body)).toBe(true);
  });

  it("keeps an HTTP/1.1 connection for the next request", async () => {
    const { number, server } = await listen((_, response) => response.end());
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 3; i++) {
      const [response] = await once(get({ port: number, host: "127.0.0.1", agent }), "response");
      await buffer(response);
    }
    expect(await connections(server)).toBe(1);
    agent.destroy();
  });

  it("serves nothing after a request for an upgrade, whose read Node drops", async () => {
    const { server } = await listen((incoming, response) => response.end(`<${incoming.url}>`));
    const client = await rawClient(server);
    await client.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\nX: ",
    );
    await client.receive("</1>");
    await client.send("GET /3 HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed(client.socket);
    expect(client.text.match(/<.*?>/g)).toEqual(["</1>"]);
    expect(client.text).toContain("Connection: close");
  });

  it("answers pipelined HTTP/1.1 requests in order", async () => {
    const { server } = await listen((incoming, response) => response.end(`<${incoming.url}>`));
    const client = await rawClient(server);
    await client.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\n\r\n",
    );
    await client.receive("</3>");
    expect(client.text.match(/<.*?>/g)).toEqual(["</1>", "</2>", "</3>"]);
    client.socket.destroy();
  });
});

describe("an HTTP/2 preface", () => {
  it("may arrive in two parts, split anywhere", async () => {
    const { server } = await listen(greet);
    for (let cut = 1; cut < PREFACE.length; cut++) {
      const client = await rawClient(server);
      await client.send(PREFACE.subarray(0, cut), PREFACE.subarray(cut));
      await expectHttp2Answer(client);
    }
  });

  it("may arrive byte by byte", async () => {
    const { server } = await listen(greet);
    const client = await rawClient(server);
    await client.send(...[...PREFACE].map((byte) => Buffer.of(byte)));
    await expectHttp2Answer(client);
  });

  it("may arrive in one segment with the frames after it", async () => {
    const { server } = await listen(greet);
    const client = await rawClient(server);
    await client.send(Buffer.concat([HELLO, getFrame(1), getFrame(3)]));
    await client.receive("2.0 GET 127.0.0.1");
    client.socket.destroy();
  });

  it("uses no CPU while it is incomplete: the socket is read only when bytes arrive", async () => {
    const { server } = await listen(greet);
    const client = await rawClient(server);
    let reads = 0;
    const read = client.server.read.bind(client.server);
    client.server.read = (size) => {
      if (++reads > 1_000) throw new Error("the socket is read endlessly");
      return read(size);
    };
    await client.send(PREFACE.subarray(0, 12));
    for (let turn = 0; turn < 2_000; turn++) await setImmediate();
    expect(reads).toBeGreaterThan(0);
    expect(reads).toBeLessThan(10);
    await client.send(PREFACE.subarray(12));
    await expectHttp2Answer(client);
  });
});

describe("an HTTP/1 request that begins like the preface", () => {
  const samples = [
    ["PUT", "PUT /put HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "1.1 PUT 127.0.0.1"],
    ["POST", "POST /post HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "1.1 POST 127.0.0.1"],
    ["PATCH", "PATCH /patch HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "1.1 PATCH 127.0.0.1"],
    ["PROPFIND", "PROPFIND / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", "1.1 PROPFIND 127.0.0.1"],
    ["PRI, which HTTP/1.1 does not define", "PRI /x HTTP/1.1\r\nHost: x\r\n\r\n", "400 Bad Request"],
    ["half a preface", "PRI * HTTP/2.0\r\n\r\nGET / HTTP/1.1\r\n\r\n", "400 Bad Request"],
    ["a preface with a wrong last byte", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", "400 Bad Request"],
  ] as const;

  it.for(samples)("%s, split anywhere", async ([, sent, answer]) => {
    const { server } = await listen(greet);
    for (let cut = 1; cut < PREFACE.length; cut++) {
      const client = await rawClient(server);
      await client.send(sent.slice(0, cut), sent.slice(cut));
      await client.receive(answer);
      client.socket.destroy();
    }
  });

  it.for(samples)("%s, byte by byte", async ([, sent, answer]) => {
    const { server } = await listen(greet);
    const client = await rawClient(server);
    await client.send(...sent);
    await client.receive(answer);
    client.socket.destroy();
  });
});

describe("a connection that never shows its protocol", () => {
  it.for([["nothing"], ["half a preface", PREFACE.subarray(0, 10)]] as const)(
    "is dropped after its timeout: %s",
    async ([, bytes]) => {
      const { server } = await listen(echo, { limits: { sniffTimeout: 50 } });
      const client = await rawClient(server);
      if (bytes) await client.send(bytes);
      await closed(client.server);
      expect(await connections(server)).toBe(0);
    },
  );

  it("is dropped at once, and without an answer, if its first line is not HTTP", async () => {
    const { server } = await listen(echo);
    const client = await rawClient(server);
    await client.send("HELO example.com\r\n");
    await once(client.socket, "close");
    expect(client.text).toBe("");
    expect(await connections(server)).toBe(0);
  });

  it("does not extend its timeout with single bytes", async () => {
    const { server } = await listen(echo, { limits: { sniffTimeout: 50 } });
    const client = await rawClient(server);
    let sent = 0;
    const trickle = setInterval(() => client.socket.write(PREFACE.subarray(sent, ++sent)), 20);
    await closed(client.server);
    clearInterval(trickle);
    expect(client.text).toBe("");
  });

  it.for([
    ["ends", (client: RawClient) => client.socket.end()],
    ["is reset", (client: RawClient) => client.socket.resetAndDestroy()],
  ] as const)("leaks nothing when it %s", async ([, leave]) => {
    const { server } = await listen(echo);
    for (const length of [0, 1, 12, 23]) {
      const client = await rawClient(server);
      await client.send(PREFACE.subarray(0, length));
      const gone = closed(client.server);
      leave(client);
      await gone;
    }
    expect(await connections(server)).toBe(0);
  });
});

describe("an HTTP/2 connection", () => {
  it("closes when the client ends it", async () => {
    const { server } = await listen(echo);
    const client = await rawClient(server, { allowHalfOpen: true });
    await client.send(HELLO);
    const gone = closed(client.server);
    client.socket.end();
    await gone;
    expect(await connections(server)).toBe(0);
  });

  it("closes soon after GOAWAY even if the client keeps its side open", async () => {
    const { server } = await listen(echo, { limits: { sniffTimeout: 50 } });
    const client = await rawClient(server, { allowHalfOpen: true });
    const gone = closed(client.server);
    await client.send(HELLO, frame(Frame.GOAWAY, 0, 0, Buffer.alloc(8)));
    await gone;
    client.socket.destroy();
  });

  it("gets GOAWAY after the idle timeout, and completes requests in flight", async () => {
    const held: ServerResponse[] = [];
    const { number } = await listen((_, response) => void held.push(response), { limits: { sessionTimeout: 200 } });
    const session = http2Client(number);
    const answer = http2Request(session, { ":path": "/" });
    await once(session, "goaway");
    held[0]?.end("finished");
    expect((await answer).body.toString()).toBe("finished");
    await once(session, "close");
  });

  it("stays open while there is traffic", async () => {
    const { number } = await listen(echo, { limits: { sessionTimeout: 100 } });
    const session = http2Client(number);
    const goaway = once(session, "goaway");
    const start = performance.now();
    for (let end = start + 500; performance.now() < end; ) {
      await new Promise((resolve) => session.ping(resolve));
      expect(session.closed).toBe(false);
    }
    await goaway;
  });

  it.each(["close", "destroy"] as const)("is not retained after the client's %s()", async (how) => {
    const sessions: WeakRef<object>[] = [];
    const { number } = await listen((request, response) => {
      sessions.push(new WeakRef(Reflect.get(request, "stream").session));
      response.end();
    });
    for (let i = 0; i < 20; i++) {
      const session = http2Client(number);
      await http2Request(session, { ":path": "/" });
      session[how]();
    }
    const retained = () => {
      // Collects garbage. It counts the sessions of other tests of the process, too.
      queryObjects(WeakRef);
      return sessions.filter((session) => session.deref() !== undefined).length;
    };
    await until(() => retained() <= 1);
  });

  it("is destroyed when an open stream makes no progress", async () => {
    const { server, number } = await listen(() => {}, { limits: { sessionTimeout: 50 } });
    const accepted = once(server, "connection");
    const stream = http2Client(number).request({ ":path": "/" });
    stream.on("error", () => {});
    const [socket] = await accepted;
    await closed(socket);
    expect(await connections(server)).toBe(0);
  });

  it("sends its limits to the client", async () => {
    const { number } = await listen(echo, { limits: { maxConcurrentStreams: 7, maxHeaderBytes: 5_000 } });
    const session = http2Client(number);
    const [settings] = await once(session, "remoteSettings");
    expect(settings).toMatchObject({ maxConcurrentStreams: 7, maxHeaderListSize: 5_000, enablePush: false });
  });

  it("has a window of 1 MiB for each stream and for the session", async () => {
    const { number } = await listen(echo);
    const session = http2Client(number);
    const [settings] = await once(session, "remoteSettings");
    expect(settings.initialWindowSize).toBe(1 << 20);
    await until(() => session.state.remoteWindowSize === 1 << 20);
  });

  it("is ended when the client opens streams only to reset them (CVE-2023-44487)", async () => {
    const { server } = await listen(echo);
    const client = await rawClient(server);
    const cancel = Buffer.of(0, 0, 0, 8);
    const flood = Array.from({ length: 3_000 }, (_, i) => [
      getFrame(2 * i + 1),
      frame(Frame.RST_STREAM, 0, 2 * i + 1, cancel),
    ]);
    client.socket.write(Buffer.concat([HELLO, ...flood.flat()]));
    await closed(client.server);
  });
});

describe("a request over its limits", () => {
  it("HTTP/1.1: a header after the timeout is answered 408", async () => {
    const { server } = await listen(echo, { limits: { headersTimeout: 50 } });
    const client = await rawClient(server);
    await client.send("GET / HTTP/1.1\r\n");
    await closed(client.socket);
    expect(client.text).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("HTTP/1.1: a body after the timeout is answered 408", async () => {
    const { server } = await listen(() => {}, { limits: { headersTimeout: 50, requestTimeout: 100 } });
    const client = await rawClient(server);
    await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
    await closed(client.socket);
    expect(client.text).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("HTTP/2: a body after the timeout is cancelled, and the session continues", async () => {
    const { number } = await listen(echo, { limits: { headersTimeout: 50, requestTimeout: 100 } });
    const session = http2Client(number);
    const stream = session.request({ ":path": "/", ":method": "POST" });
    stream.on("error", () => {});
    stream.write("half");
    await once(stream, "close");
    expect(stream.rstCode).toBe(8);
    expect((await http2Request(session, { ":path": "/" })).status).toBe(200);
  });

  it("HTTP/2: the body of a stream may arrive for as long as its response, and is reset after it", async () => {
    const answer: RequestListener = (incoming, response) => {
      liftRequestLimit((response as unknown as Http2ServerResponse).stream as ServerHttp2Stream);
      incoming.on("data", (chunk) => (String(chunk) === "end" ? response.end(chunk) : response.write(chunk)));
    };
    const { number } = await listen(answer, { limits: { headersTimeout: 10, requestTimeout: 20 } });
    const stream = http2Client(number).request({ ":path": "/", ":method": "POST" });
    stream.on("error", () => {}).write("first");
    await once(stream, "data");
    await sleep(100);
    stream.write("end");
    expect(String((await once(stream, "data"))[0])).toBe("end");
    await once(stream, "close");
    expect(stream.rstCode).toBe(0);
  });

  it("HTTP/1.1: a header that is too large is answered 431", async () => {
    const { server } = await listen(echo, { limits: { maxHeaderBytes: 1_000 } });
    const client = await rawClient(server);
    await client.send(`GET / HTTP/1.1\r\nHost: x\r\nX: ${"a".repeat(1_000)}\r\n\r\n`);
    await client.receive("HTTP/1.1 431 ");
  });

  it("HTTP/2: a header that is too large is refused, and the session continues", async () => {
    const { number } = await listen(echo, { limits: { maxHeaderBytes: 1_000 } });
    const session = http2Client(number);
    await once(session, "remoteSettings");
    await expect(http2Request(session, { ":path": "/", x: "a".repeat(1_000) })).rejects.toThrow("ENHANCE_YOUR_CALM");
    expect((await http2Request(session, { ":path": "/" })).status).toBe(200);
  });

  it("HTTP/1.1: a connection without progress during a request is dropped", async () => {
    const { server } = await listen(() => {}, { limits: { inactivityTimeout: 50 } });
    const client = await rawClient(server);
    await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed(client.server);
  });
});
