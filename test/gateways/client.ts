import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:http2";
import type { Socket } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { pairsOf } from "./application.ts";

export interface Sent {
  readonly method?: string;
  /** Sent unchanged, such as `//private/./x`. */
  readonly target?: string;
  /** Sent unchanged, including duplicate names. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
  /** Address of the client; the proxies of the tests are 127.0.0.1. */
  readonly from?: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Returns the values of all fields of this name, joined. */
  header(name: string): string | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** The address of an ordinary client. */
export const CLIENT = "127.0.0.2";

/** Sends a request on a connection of its own and resolves to the response. After 101 the connection is closed. */
export async function send(url: string, sent: Sent = {}): Promise<Answer> {
  const outgoing = open(url, sent);
  outgoing.end(sent.body);
  const [response, socket] = await new Promise<[IncomingMessage, Socket?]>((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("response", (response) => resolve([response]));
    outgoing.on("upgrade", (response, socket: Socket) => resolve([response, socket]));
  });
  socket?.destroy();
  return answerOf(response, socket === undefined ? await textOf(response) : "");
}

/** Sends a request over HTTP/2 without TLS, with names in lower case. */
export async function sendHttp2(
  url: string,
  { method = "GET", target = "/", headers = [], body }: Sent = {},
): Promise<Answer> {
  const session = connect(url);
  try {
    const grouped = Map.groupBy(headers, ([name]) => name.toLowerCase());
    const fields = [...grouped].map(([name, all]) => [name, all.map(([, value]) => value)] as const);
    const stream = session.request({ ":method": method, ":path": target, ...Object.fromEntries(fields) });
    stream.end(body);
    const [[response], text] = await Promise.all([once(stream, "response"), textOf(stream)]);
    const { ":status": status, ...others } = response;
    return answerWith(
      Number(status),
      Object.entries(others).map(([name, value]) => [name, String(value)]),
      text,
    );
  } finally {
    session.destroy();
  }
}

/** A connection after 101, or the response that refused it. */
export type Upgraded = { readonly socket: Socket } | { readonly refused: Answer };

const UPGRADE: readonly (readonly [string, string])[] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
  ["Sec-WebSocket-Version", "13"],
  ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
];

/** Sends a WebSocket handshake. */
export function upgrade(url: string, sent: Sent = {}): Promise<Upgraded> {
  const outgoing = open(url, { ...sent, headers: [...UPGRADE, ...(sent.headers ?? [])] });
  outgoing.end();
  return new Promise((resolve, reject) => {
    outgoing.on("error", reject);
    outgoing.on("upgrade", (_, socket: Socket) => resolve({ socket }));
    outgoing.on("response", async (response) => resolve({ refused: answerOf(response, await textOf(response)) }));
  });
}

function open(url: string, { method = "GET", target = "/", headers = [], body, from = CLIENT }: Sent): ClientRequest {
  const { host, hostname, port } = new URL(url);
  const length = body === undefined ? [] : ["Content-Length", String(Buffer.byteLength(body))];
  return request({
    hostname,
    port,
    method,
    path: target,
    headers: ["Host", host, ...length, ...headers.flat()],
    agent: false,
    localAddress: from,
  });
}

function answerOf({ statusCode = 0, rawHeaders }: IncomingMessage, body: string): Answer {
  return answerWith(statusCode, pairsOf(rawHeaders), body);
}

function answerWith(status: number, headers: Answer["headers"], body: string): Answer {
  const valuesOf = (wanted: string) => headers.filter(([name]) => name.toLowerCase() === wanted);
  return {
    status,
    body,
    headers,
    header: (name) => {
      const found = valuesOf(name.toLowerCase());
      return found.length === 0 ? undefined : found.map(([, value]) => value).join(", ");
    },
  };
}
