import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { Certificate } from "../../../src/transport/listener/acceptor.ts";
import { defaultLimits, type ListenerLimits } from "../../../src/transport/listener/limits.ts";
import { ListenerServer } from "../../../src/transport/listener/server.ts";
import { Frame, frame, PREFACE } from "../../support/http2-wire.ts";
import { listenLocally } from "../../support/listen.ts";

export function certificate(name: "localhost" | "renewed"): Certificate & { readonly cert: string } {
  const read = (part: string) =>
    readFileSync(new URL(`../../support/tls/${name}.${part}.pem`, import.meta.url), "utf8");
  return { cert: read("cert"), key: read("key") };
}

/** Echoes the body. */
export const echo: RequestListener = (request, response) => {
  request.pipe(response);
};

/** Describes how the request arrived. */
export const greet: RequestListener = (request, response) => {
  const greeting = `${request.httpVersion} ${request.method} ${request.socket.remoteAddress}`;
  request.resume().once("end", () => response.end(greeting));
};

/** A listener that holds its responses until the test releases them. */
export function holding() {
  const held: ServerResponse[] = [];
  return { held, listener: (_: IncomingMessage, response: ServerResponse) => void held.push(response) };
}

/** The connection preface of an HTTP/2 client, with empty settings. */
export const HELLO = Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0)]);

/** A free port of 127.0.0.1, closed when the test ends. */
export async function listen(
  listener: RequestListener,
  options: { certificate?: Certificate; limits?: Partial<ListenerLimits> } = {},
) {
  const allOptions = { ...options, limits: { ...defaultLimits, ...options.limits } };
  const server = new ListenerServer(allOptions, listener);
  onTestFinished(() => stop(server));
  return { server, number: await listenLocally(server) };
}

export async function stop(server: ListenerServer): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

export function connections(server: ListenerServer): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

/** Like `once(stream, "close")`, but resolves for a reset stream and for one that is already closed. */
export function closed(stream: Readable): Promise<void> {
  return new Promise((resolve) => (stream.closed ? resolve() : stream.once("close", () => resolve())));
}

/** Polls a condition in every tick of the event loop, where no event exists. */
export async function until(condition: () => boolean): Promise<void> {
  const end = performance.now() + 10_000;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`still not so: ${condition}`);
    await setImmediate();
  }
}

/** A TCP client that keeps the received bytes, and the server's socket of the same connection. */
export class RawClient {
  readonly socket: Socket;
  readonly server: Socket;
  received: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, server: Socket) {
    this.socket = socket;
    this.server = server;
    socket.on("data", (chunk) => {
      this.received = Buffer.concat([this.received, Buffer.from(chunk)]);
    });
    socket.on("error", () => {});
  }

  get text(): string {
    return this.received.toString("latin1");
  }

  /** Sends each part separately: the server has read one before the next is written. */
  async send(...parts: (string | Uint8Array)[]): Promise<void> {
    for (const part of parts) {
      const read = this.server.bytesRead + Buffer.byteLength(part);
      this.socket.write(part);
      await until(() => this.server.bytesRead >= read || this.server.destroyed);
      await setImmediate();
    }
  }

  async receive(text: string): Promise<void> {
    await until(() => this.text.includes(text));
  }
}

export async function rawClient(server: ListenerServer, options: Partial<NetConnectOpts> = {}): Promise<RawClient> {
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const socket = connect({ port, host: "127.0.0.1", ...options });
  const [serverSocket] = await accepted;
  return new RawClient(socket, serverSocket);
}

export interface Answer {
  readonly status: number | undefined;
  readonly body: Buffer;
}

export function http2Client(number: number, tls?: { readonly cert: string }): ClientHttp2Session {
  const url = `${tls ? "https" : "http"}://127.0.0.1:${number}`;
  const session = connectHttp2(url, { ca: tls?.cert });
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

/** Sends one request on an HTTP/2 session. Rejects if the stream is reset or refused. */
export async function http2Request(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: Uint8Array,
): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined });
  stream.end(body);
  const answered = once(stream, "response");
  const content = buffer(stream);
  const [response] = await Promise.all([answered, content]).then(([args]) => args);
  return { status: response[":status"], body: await content };
}
