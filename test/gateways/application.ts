import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { listenLocally } from "../support/listen.ts";

/** A request as the application received it. */
export interface Received {
  readonly method: string;
  readonly target: string;
  /** Every field in its order and case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  readonly isUpgrade: boolean;
}

/** The application behind a gateway. */
export interface Application {
  readonly address: string;
  /** What reached it since `forget`. */
  readonly received: readonly Received[];
  forget(): void;
  close(): Promise<void>;
}

/** The body of its responses, which a client sees only if its request reached the application. */
export const PROTECTED = "protected content";

const WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Starts an application that records every request and permits everything. After an upgrade it echoes what it receives. */
export async function startApplication(): Promise<Application> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    received.push(describe(request, body, false));
    response.writeHead(200, { "content-type": "text/plain", "x-application": "reached" }).end(PROTECTED);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket) => {
    received.push(describe(request, "", true));
    socket.on("error", () => {});
    // HAProxy and Apache check it (RFC 6455 §4.2.2).
    const accept = createHash("sha1").update(`${request.headers["sec-websocket-key"]}${WEBSOCKET}`).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.pipe(socket);
  });
  server.keepAliveTimeout = 300_000;
  return {
    address: `127.0.0.1:${await listenLocally(server)}`,
    received,
    forget: () => void received.splice(0),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Returns the pairs of a list of names and values. */
export function pairsOf(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, place) => (place % 2 === 0 ? [[name, raw[place + 1] ?? ""] as const] : []));
}

function describe({ method = "", url = "", rawHeaders }: IncomingMessage, body: string, isUpgrade: boolean): Received {
  return { method, target: url, headers: pairsOf(rawHeaders), body, isUpgrade };
}

/**
 * Returns the values by the name that CGI and WSGI give a header: in upper case, every other character a `_`. So `X_Keyhold_Key_Id` and
 * `X-Keyhold-Key-Id` are the same.
 */
export function variablesOf({ headers }: Received): Map<string, string[]> {
  const name = (header: string) => `HTTP_${header.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
  const grouped = Map.groupBy(headers, ([header]) => name(header));
  return new Map([...grouped].map(([variable, fields]) => [variable, fields.map(([, value]) => value)]));
}
