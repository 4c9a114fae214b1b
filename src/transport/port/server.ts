import { type RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Certificate, createPlainEntry, type Decided, destroy, type Entry } from "./entry.ts";
import type { Front } from "./front.ts";
import { createHttp1, type Http1 } from "./http1.ts";
import { createHttp2, type Http2 } from "./http2.ts";
import type { PortLimits } from "./limits.ts";
import { OpenResponses } from "./responses.ts";
import { createTlsEntry } from "./tls.ts";

/**
 * Node's HTTP/1.1 server with an entry in front, which hands the connections that speak HTTP/2 to a second server. Both call
 * the same listener. It is an `http.Server` because that alone watches slow requests and idle connections.
 */
export class PortServer extends Server {
  readonly #limits: PortLimits;
  readonly #sockets = new Set<Socket>();
  readonly #responses = new OpenResponses(() => this.#responseClosed());
  readonly #http1: Http1 | undefined;
  readonly #http2: Http2;
  readonly #entry: Entry;
  #closing = false;
  /** Whether connections that rest may send one more request when we close. */
  #lingering: boolean;
  #accepted = 0;

  /** Throws Node's error if the certificate or a limit cannot be used. */
  constructor(
    limits: PortLimits,
    certificate: Certificate | undefined,
    front: Front | undefined,
    listener: RequestListener,
  ) {
    super(http1Options(limits));
    this.timeout = limits.inactivityTimeout;
    this.#limits = limits;
    this.#lingering = limits.lingerTimeout > 0;
    const handOver = takeConnectionListener(this);
    const cutShort = (socket: Socket) => {
      if (!this.emit("clientError", new CutShort(), socket)) socket.destroy();
    };
    this.#http1 = front && createHttp1(limits, front, { handOver, cutShort });
    this.#http2 = createHttp2(limits, front, (request, response) => this.emit("request", request, response));
    const serve = { http1: this.#http1?.serve ?? handOver, http2: this.#http2.serve };
    this.#entry = createEntry(limits, certificate, (socket, protocol) => serve[protocol](socket));
    this.on("connection", (socket) => this.#accept(socket));
    this.on("request", (_, response) => this.#track(response));
    this.on("request", (request, response) => {
      // An HTTP/2 request that comes by here was left by the front.
      if (request.httpVersionMajor !== 1 || !front?.takeRequest(request, response)) listener(request, response);
    });
  }

  /**
   * Closes without loss: takes no new connection, tells clients to go with their next answer and lets what is under way finish.
   * After `lingerTimeout` it ends the connections that rest or have not said a word, after `closeTimeout` what is left. `callback`
   * is called at the end.
   */
  override close(callback?: (error?: Error) => void): this {
    if (this.#lingering) this.#whenNoneWaits(() => this.#close(callback));
    else this.#close(callback);
    return this;
  }

  /** Clients that are told to go connect again, and this port must be closed by then. */
  #close(callback?: (error?: Error) => void): void {
    const wasListening = this.listening;
    super.close(callback);
    if (wasListening) this.#drain();
  }

  /** As in Node, but not while they linger, nor, as Node would, while a connection is sending the end of a large response. */
  override closeIdleConnections(): void {
    if (!this.#lingering && !this.#responses.flushing()) super.closeIdleConnections();
  }

  /** Destroys every connection of either protocol. */
  override closeAllConnections(): void {
    this.#sockets.forEach(destroy);
  }

  /** Of use with TLS alone: takes a certificate for the handshakes from now on. */
  setCertificate(certificate: Certificate): void {
    this.#entry.setCertificate?.(certificate);
  }

  #accept(socket: Socket): void {
    this.#accepted++;
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    this.#entry.accept(socket);
  }

  #track(response: ServerResponse): void {
    // HTTP/2 comes by here too; its sessions keep account of themselves.
    if (!(response instanceof ServerResponse)) return;
    if (this.#closing) response.shouldKeepAlive = false;
    this.#responses.add(response);
  }

  #drain(): void {
    const { lingerTimeout, closeTimeout } = this.#limits;
    this.#closing = true;
    this.#responses.makeLast();
    this.#http1?.windDown();
    this.#http2.windDown();
    const linger = this.#lingering ? setTimeout(() => this.#endResting(), lingerTimeout) : undefined;
    if (!this.#lingering) this.#endResting();
    const deadline = setTimeout(() => this.closeAllConnections(), closeTimeout);
    this.once("close", () => {
      clearTimeout(linger);
      clearTimeout(deadline);
      this.#closing = false;
      this.#lingering = lingerTimeout > 0;
    });
  }

  /**
   * The kernel has opened connections that we have not accepted yet, and resets them when the port closes; their requests are lost.
   * Node accepts one in a turn of the event loop: after a turn without, there was none.
   */
  #whenNoneWaits(close: () => void, turns = MAX_TURNS): void {
    const before = this.#accepted;
    setImmediate(() => {
      if (this.#accepted === before || turns === 0) close();
      else this.#whenNoneWaits(close, turns - 1);
    });
  }

  #endResting(): void {
    this.#lingering = false;
    this.#entry.drop();
    this.#http1?.endResting();
    this.#http2.drain();
    this.closeIdleConnections();
  }

  /** Node closes idle connections when `close()` is called and not those that come to rest later. */
  #responseClosed(): void {
    if (this.#closing) this.closeIdleConnections();
  }
}

/** As many connections as wait at the most, by Node's default of `backlog`. */
const MAX_TURNS = 511;

function http1Options(limits: PortLimits) {
  const { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderBytes } = limits;
  // Node looks at slow requests this often, so one may be late by half the time it has for its header.
  const connectionsCheckingInterval = Math.ceil(headersTimeout / 2);
  return {
    headersTimeout,
    requestTimeout,
    keepAliveTimeout,
    connectionsCheckingInterval,
    maxHeaderSize: maxHeaderBytes,
    // Else Node keeps the first of two, and what stands in front of us may have looked at the other.
    joinDuplicateHeaders: true,
  };
}

/** What Node's parser says of a request without its end. */
class CutShort extends Error {
  readonly code = "HPE_INVALID_EOF_STATE";
}

/** Node's own HTTP/1.1 for a socket. `http.Server` registers it as its first listener and offers no other way to it. */
function takeConnectionListener(server: Server): (socket: Socket) => void {
  const [listener] = server.listeners("connection");
  if (listener === undefined) throw new Error("http.Server has no connection listener");
  server.removeAllListeners("connection");
  return (socket) => listener.call(server, socket);
}

function createEntry(limits: PortLimits, certificate: Certificate | undefined, decided: Decided): Entry {
  if (certificate === undefined) return createPlainEntry(limits.sniffTimeout, decided);
  return createTlsEntry(certificate, limits.sniffTimeout, decided);
}
