import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { defaultLimits } from "../../src/transport/listener/limits.ts";
import { isUpgrade } from "../../src/transport/listener/server.ts";
import { isHost } from "../../src/transport/pipeline/host-check.ts";
import { escaped } from "./case.ts";
import { converse } from "./http1.ts";

/** An HTTP/1.1 request as parsed by Node. */
export interface ParsedRequest {
  isComplete: boolean;
  /** Whether the connection ends after the response. */
  isLast: boolean;
  /** Whether Node itself rejects it, with 400 or 417. */
  readonly isRefused: boolean;
}

/** All bytes of a connection as parsed by Node. */
export interface ParsedConnection {
  readonly requests: ParsedRequest[];
  /** Code of the parse error after the requests. */
  error: string | undefined;
}

/** Plain `node:http` and `node:http2` servers for comparison. */
export interface References {
  parse(bytes: Uint8Array): Promise<ParsedConnection>;
  readonly http2Port: number;
}

export async function createReferences(): Promise<References> {
  const parsed = new Map<number, ParsedConnection>();
  const server = createServer({ maxHeaderSize: defaultLimits.maxHeaderBytes, requireHostHeader: false });
  Reflect.set(server, "httpAllowHalfOpen", true);
  const of = (port = 0): ParsedConnection => {
    const known = parsed.get(port) ?? { requests: [], error: undefined };
    parsed.set(port, known);
    return known;
  };
  const take = (request: IncomingMessage, response: ServerResponse, isExpectationUnknown = false) => {
    const { requests } = of(request.socket.remotePort);
    if (isUpgrade(request)) response.shouldKeepAlive = false;
    const isRefused = isExpectationUnknown || !hasOneHost(request);
    const entry = { isComplete: false, isLast: !response.shouldKeepAlive, isRefused };
    requests.push(entry);
    request.on("error", () => {});
    request.on("end", () => {
      entry.isComplete = true;
      response.end();
    });
    request.resume();
  };
  server.on("connection", (socket) => {
    const { remotePort } = socket;
    socket.once("end", () => {
      const known = of(remotePort);
      if (known.requests.every(({ isComplete }) => isComplete)) return;
      known.error ??= "incomplete";
      socket.destroy();
    });
  });
  server.on("request", take);
  server.on("checkExpectation", (request, response) => take(request, response, true));
  server.on("connect", (request: IncomingMessage) => {
    of(request.socket.remotePort).requests.push({ isComplete: true, isLast: true, isRefused: false });
    request.socket.destroySoon();
  });
  server.on("clientError", (error: Error & { code?: string }, socket) => {
    if (error.code !== "ECONNRESET" && "remotePort" in socket) of(socket.remotePort as number).error ??= error.code;
    socket.destroy();
  });
  const http2 = createHttp2Server(
    {
      settings: {
        maxConcurrentStreams: defaultLimits.maxConcurrentStreams,
        maxHeaderListSize: defaultLimits.maxHeaderBytes,
      },
    },
    (request, response) => {
      request.on("error", () => {}).on("end", () => response.end("{}"));
      request.resume();
    },
  );
  http2.on("checkContinue", (request, response) => http2.emit("request", request, response));
  http2.on("sessionError", () => {});
  const port = await listen(server);
  const http2Port = await listen(http2);
  return {
    http2Port,
    async parse(bytes) {
      let local = 0;
      const { isClosed } = await converse(port, [bytes], { onConnect: (socket) => (local = socket.localPort ?? 0) });
      const known = parsed.get(local) ?? of(local);
      parsed.delete(local);
      if (!isClosed)
        throw new Error(`the reference did not close the connection: ${JSON.stringify(known)} ${escaped(bytes)}`);
      return known;
    },
  };
}

/** RFC 9112 §3.2 requires exactly one valid Host, which Node checks only in part; Node also accepts HTTP/0.9. */
function hasOneHost({ rawHeaders, httpVersion }: IncomingMessage): boolean {
  const hosts = rawHeaders.filter((_, place) => place % 2 === 1 && rawHeaders[place - 1]?.toLowerCase() === "host");
  if (hosts.length === 0) return httpVersion === "1.0";
  return httpVersion !== "0.9" && hosts.length === 1 && isHost(hosts[0] ?? "");
}

async function listen(
  server: { listen(port: number, host: string): { unref(): unknown }; address(): unknown } & NodeJS.EventEmitter,
) {
  server.listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
