import { once } from "node:events";
import { Agent, get, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ListenerServer } from "../../../src/transport/listener/server.ts";
import { Frame, frames, getFrame, PREFACE } from "../../support/http2-wire.ts";
import { closed, greet, HELLO, holding, http2Client, http2Request, listen, rawClient, until } from "./support.ts";

function close(server: ListenerServer): Promise<void> {
  return new Promise((resolve, reject) => server.close((error) => (error ? reject(error) : resolve())));
}

describe("closing the port", () => {
  it("refuses connections from then on", async () => {
    const { server, number } = await listen(greet);
    await close(server);
    const socket = connect(number, "127.0.0.1");
    await expect(once(socket, "connect")).rejects.toThrow("ECONNREFUSED");
  });

  it("lets an HTTP/1.1 request finish, with Connection: close, and then ends its connection", async () => {
    const { held, listener } = holding();
    const { server, number } = await listen(listener);
    const agent = new Agent({ keepAlive: true });
    const answered = once(get({ port: number, host: "127.0.0.1", agent }), "response");
    await until(() => held.length === 1);
    const done = close(server);
    held[0]?.end("finished");
    const [response] = await answered;
    expect(response.headers.connection).toBe("close");
    expect(await text(response)).toBe("finished");
    await done;
  });

  it("ends the connection of an HTTP/1.1 response whose header was already sent", async () => {
    const { held, listener } = holding();
    const { server, number } = await listen(listener);
    const agent = new Agent({ keepAlive: true });
    const answered = once(get({ port: number, host: "127.0.0.1", agent }), "response");
    await until(() => held.length === 1);
    held[0]?.write("half");
    const [response] = await answered;
    expect(response.headers.connection).toBe("keep-alive");
    const done = close(server);
    held[0]?.end(" and half");
    expect(await text(response)).toBe("half and half");
    await done;
  });

  it("answers all pipelined HTTP/1.1 requests, the last with Connection: close", async () => {
    const { held, listener } = holding();
    const { server } = await listen(listener);
    const client = await rawClient(server);
    await client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => held.length === 2);
    const done = close(server);
    held[0]?.end("one");
    held[1]?.end("two");
    await Promise.all([done, closed(client.socket)]);
    expect(client.text.match(/Connection: .*|one|two/g)).toEqual([
      "Connection: keep-alive",
      "one",
      "Connection: close",
      "two",
    ]);
  });

  it("answers a new request on an open HTTP/1.1 connection with Connection: close", async () => {
    const { held, listener } = holding();
    const { server } = await listen(listener);
    const client = await rawClient(server);
    await client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => held.length === 1);
    held[0]?.write("one");
    const done = close(server);
    await client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => held.length === 2);
    held[0]?.end();
    held[1]?.end("two");
    await Promise.all([done, closed(client.socket)]);
    expect(client.text.match(/Connection: .*|one|two/g)).toEqual([
      "Connection: keep-alive",
      "one",
      "Connection: close",
      "two",
    ]);
  });

  it("completes a large HTTP/1.1 response that the client reads slowly", async () => {
    const body = Buffer.alloc(16 << 20, "keyhold ");
    const ended: ServerResponse[] = [];
    const { server, number } = await listen((_, response) => void ended.push(response.end(body)));
    const [response] = await once(
      get({ port: number, host: "127.0.0.1", agent: new Agent({ keepAlive: true }) }),
      "response",
    );
    expect(ended[0]?.writableFinished).toBe(false);
    const done = close(server);
    await setImmediate();
    expect((await buffer(response)).length).toBe(body.length);
    await done;
  });

  it("ends idle connections of either protocol", async () => {
    const { server, number } = await listen(greet);
    const [response] = await once(
      get({ port: number, host: "127.0.0.1", agent: new Agent({ keepAlive: true }) }),
      "response",
    );
    await buffer(response);
    const session = http2Client(number);
    await http2Request(session, { ":path": "/" });
    const gone = once(session, "close");
    await close(server);
    await gone;
  });

  it.for([["nothing"], ["half a preface", PREFACE.subarray(0, 10)]] as const)(
    "drops a connection that has sent %s",
    async ([, bytes]) => {
      const { server } = await listen(greet);
      const client = await rawClient(server);
      if (bytes) await client.send(bytes);
      await close(server);
      await closed(client.socket);
    },
  );

  it("sends GOAWAY with the last stream it serves, and completes that stream", async () => {
    const { held, listener } = holding();
    const { server } = await listen(listener);
    const client = await rawClient(server);
    await client.send(HELLO, getFrame(1), getFrame(3));
    await until(() => held.length === 2);
    const done = close(server);
    await client.send(getFrame(5));
    for (const response of held) response.end("finished");
    await closed(client.socket);
    await done;
    const received = frames(client.received);
    const goaway = received.find(({ type }) => type === Frame.GOAWAY);
    expect(goaway?.payload).toEqual(Buffer.from([0, 0, 0, 3, 0, 0, 0, 0]));
    const answers = received.filter(({ type, payload }) => type === Frame.DATA && payload.length > 0);
    expect(answers.map(({ stream, payload }) => [stream, payload.toString()])).toEqual([
      [1, "finished"],
      [3, "finished"],
    ]);
    expect(held).toHaveLength(2);
  });

  it("sends GOAWAY to Node's HTTP/2 client, whose request in flight is answered", async () => {
    const { held, listener } = holding();
    const { server, number } = await listen(listener);
    const session = http2Client(number);
    const answer = http2Request(session, { ":path": "/", ":method": "POST" }, Buffer.from("body"));
    await until(() => held.length === 1);
    const goaway = once(session, "goaway");
    const done = close(server);
    expect((await goaway).slice(0, 2)).toEqual([0, 1]);
    held[0]?.end("finished");
    expect((await answer).body.toString()).toBe("finished");
    await done;
  });

  it("destroys stuck connections after the close timeout", async () => {
    const { held, listener } = holding();
    const { server, number } = await listen(listener, { limits: { closeTimeout: 50 } });
    const stuck = get({ port: number, host: "127.0.0.1" });
    const stream = http2Client(number).request({ ":path": "/" });
    stream.end();
    const half = await rawClient(server);
    await half.send("GET / HTTP/1.1\r\n");
    await until(() => held.length === 2);
    const hungUp = expect(once(stuck, "response")).rejects.toThrow("socket hang up");
    await Promise.all([hungUp, closed(stream), closed(half.socket), close(server)]);
  });

  it("rejects a second close, since the port is not open", async () => {
    const { server } = await listen(greet);
    await Promise.all([close(server), expect(close(server)).rejects.toThrow("not running")]);
  });
});
