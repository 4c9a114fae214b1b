import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { Field, HostileRequest } from "./calls.ts";
import { openConnection } from "./connection.ts";

export interface Http1Options {
  /** Whether the body is chunked (RFC 9112 §7.1). */
  readonly isChunked?: boolean;
  readonly fields?: readonly Field[];
}

/** Returns the bytes of an HTTP/1.1 request. */
export function toHttp1(
  { method, path, fields, body }: HostileRequest,
  { isChunked = false, fields: more = [] }: Http1Options = {},
): Buffer {
  const framing: readonly Field[] = isChunked
    ? [["transfer-encoding", "chunked"]]
    : body.length > 0 || !/^(?:GET|HEAD|DELETE|OPTIONS|TRACE)$/.test(method)
      ? [["content-length", String(body.length)]]
      : [];
  const lines = [["host", "localhost"] as const, ...framing, ...fields, ...more].map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const head = `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), isChunked ? inChunks(body) : body]);
}

function inChunks(body: Buffer): Buffer {
  const half = Math.ceil(body.length / 2);
  const parts = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  const chunks = parts.flatMap((part) => [`${part.length.toString(16)}\r\n`, part, "\r\n"]);
  return Buffer.concat([...chunks, "0\r\n\r\n"].map((part) => Buffer.from(part)));
}

/** How a client ends its connection: it half-closes and continues to read, resets, or waits for the server. */
export type Ending = "half-close" | "reset" | "wait";

export interface Conversation {
  /** All bytes from the server. */
  readonly received: Buffer;
  /** Whether the server closed the connection within the time limit. */
  readonly isClosed: boolean;
}

export interface ConverseOptions {
  readonly ending?: Ending;
  /** Milliseconds in which the server must close the connection. */
  readonly timeout?: number;
  readonly tls?: boolean;
  readonly onConnect?: (socket: Socket) => void;
}

/** Sends each segment separately over one TCP connection, ends it, and returns what was received. */
export async function converse(
  port: number,
  segments: readonly Uint8Array[],
  { ending = "half-close", timeout = 10_000, tls = false, onConnect }: ConverseOptions = {},
): Promise<Conversation> {
  const { socket, reset } = openConnection(port, tls ? "http/1.1" : undefined);
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve) => {
    socket.on("data", (chunk) => received.push(Buffer.from(chunk)));
    socket
      .once("end", resolve)
      .once("close", () => resolve())
      .on("error", () => resolve());
  });
  if (onConnect !== undefined) socket.once("connect", () => onConnect(socket));
  let isClosed = true;
  for (const segment of segments) await write(socket, segment);
  if (ending === "reset") reset();
  if (ending === "half-close") socket.end();
  const timer = setTimeout(() => {
    isClosed = false;
    socket.destroy();
  }, timeout);
  await ended;
  clearTimeout(timer);
  socket.destroy();
  return { received: Buffer.concat(received), isClosed };
}

/** After two ticks of the event loop, most segments have been sent as separate packets. */
async function write(socket: Socket, segment: Uint8Array): Promise<void> {
  if (socket.destroyed) return;
  await new Promise<void>((resolve) => socket.write(segment, () => resolve()));
  await setImmediate();
  await setImmediate();
}
