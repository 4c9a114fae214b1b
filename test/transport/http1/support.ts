import { EventEmitter, once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { setImmediate } from "node:timers/promises";
import { onTestFinished } from "vitest";
import type { Http1Message } from "../../../src/transport/http1/message.ts";
import type { Certificate } from "../../../src/transport/port/entry.ts";
import type { Front } from "../../../src/transport/port/front.ts";
import { defaultLimits, type PortLimits } from "../../../src/transport/port/limits.ts";
import { createPort } from "../../../src/transport/port/port.ts";
import { stop } from "../port/support.ts";

/** What was understood of a request, as JSON: the same text of the same understanding. */
function understood(method: string, target: string, headers: object, body: Uint8Array): string {
  const fields = Object.entries(headers).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify({ method, target, fields, body: Buffer.from(body).toString("latin1") });
}

function fieldsOf(body: string): string[] {
  return ["content-type", "application/json", "content-length", String(Buffer.byteLength(body))];
}

/** Through the objects of `node:http`. */
const echoByNode = async (request: IncomingMessage, response: ServerResponse) => {
  const { method = "", url = "", headers } = request;
  const body = understood(method, url, headers, await buffer(request));
  response.writeHead(200, fieldsOf(body));
  response.end(body);
};

/** To what is not HTTP. */
export const BAD_REQUEST = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

export interface EchoServer {
  readonly port: number;
  /** Requests that came by the front, and by `node:http`. */
  readonly counts: { front: number; node: number };
  /** Emits "waiting" with each message for /wait, which the test responds to. */
  readonly waiting: EventEmitter;
  readonly server: ReturnType<ReturnType<typeof createPort>["serverFactory"]>;
}

export interface EchoOptions {
  readonly front?: boolean;
  readonly limits?: Partial<PortLimits>;
  readonly certificate?: Certificate;
}

/** A port that says what it understood of each request; its front leaves those below /node. */
export async function startEcho({ front = true, limits, certificate }: EchoOptions = {}): Promise<EchoServer> {
  const counts = { front: 0, node: 0 };
  const waiting = new EventEmitter();
  const takeMessage = (message: Http1Message): boolean => {
    if (message.head.target.startsWith("/node")) return false;
    counts.front++;
    if (message.head.target === "/wait") waiting.emit("waiting", message);
    else answer(message);
    return true;
  };
  const port = createPort({
    ...(certificate && { certificate }),
    limits: { ...defaultLimits, ...limits },
    ...(front && { front: { takeMessage, takeRequest: () => false, takeStream: () => false } satisfies Front }),
  });
  const server = port.serverFactory((request, response) => {
    counts.node++;
    // One that is cut short has been refused by then.
    void echoByNode(request, response).catch(() => undefined);
  });
  server.on("clientError", (_, socket) => {
    if (socket.writable) socket.write(BAD_REQUEST);
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => stop(server));
  await once(server, "listening");
  const { port: number } = server.address() as AddressInfo;
  return { port: number, counts, waiting, server };
}

export function answer(message: Http1Message): void {
  const { method, target, headers } = message.head;
  const body = understood(method, target, headers, message.body);
  message.respond({ status: 200, headers: fieldsOf(body), body });
}

/** All that the server answers to these parts, each of which it reads on its own; then the client ends its side. */
export async function conversation(port: number, parts: readonly Buffer[]): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  const received: Buffer[] = [];
  socket.on("data", (chunk) => received.push(Buffer.from(chunk))).on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const part of parts) {
    await new Promise<void>((resolve) => socket.write(part, () => resolve()));
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }
  socket.end();
  socket.once("end", () => socket.destroy());
  await closed;
  return Buffer.concat(received)
    .toString("latin1")
    .replaceAll(/^Date: .*$/gm, "Date: varies");
}
