import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { BodyBudget, bodyReader } from "../../../src/transport/wire/request-body.ts";
import { listenLocally } from "../../support/listen.ts";

const readBody = bodyReader(new BodyBudget(1000));

/** Resolves to the next request. */
let next = Promise.withResolvers<IncomingMessage>();
const server = new ListenerServer({ limits: defaultLimits }, (request) => next.resolve(request));
let port = 0;

beforeAll(async () => {
  port = await listenLocally(server);
});

afterAll(() => void server.close());

/** A POST that is only partly received. */
interface Sender {
  readonly request: IncomingMessage;
  leave(): void;
}

async function sendHttp1(part: string): Promise<Sender> {
  next = Promise.withResolvers();
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n${part}`);
  return { request: await next.promise, leave: () => socket.destroy() };
}

async function sendHttp2(part: string): Promise<Sender> {
  next = Promise.withResolvers();
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": "POST", "content-type": "application/json" });
  stream.on("error", () => undefined).write(part);
  return { request: await next.promise, leave: () => stream.destroy() };
}

describe.each([
  ["HTTP/1.1", sendHttp1],
  ["HTTP/2", sendHttp2],
])("a caller that disconnects over %s", (_, send) => {
  test("while the body is read fails the read", async () => {
    const { request, leave } = await send("{");
    const reading = readBody(request, 100);
    leave();
    await expect(reading).rejects.toThrow("the client disconnected");
  });

  test("before the body is read fails the read", async () => {
    const { request, leave } = await send("{");
    const aborted = once(request, "aborted");
    leave();
    await aborted;
    await expect(readBody(request, 100)).rejects.toThrow("the client disconnected");
  });

  test("after sending too much still gets the size error", async () => {
    const { request, leave } = await send("12345");
    await expect(readBody(request, 4)).rejects.toThrow("the request body is too large");
    leave();
  });
});
