import { type RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type Acceptor, type Certificate, createPlainAcceptor, createTlsAcceptor, destroy } from "./acceptor.ts";
import { createHttp2, type Http2 } from "./http2.ts";
import { InFlightResponses } from "./in-flight-responses.ts";
import type { ListenerLimits } from "./limits.ts";
import type { Protocol } from "./protocol-detection.ts";
import type { Http1Connections, RequestInterceptor } from "./request-interceptor.ts";

export interface ListenerOptions {
  /** With it the port speaks TLS alone; without it, plain text alone. Both protocols are spoken either way. */
  readonly certificate?: Certificate;
  readonly limits: ListenerLimits;
  readonly interceptor?: RequestInterceptor;
}

/**
 * One port for HTTP/1.1 and HTTP/2: Node's HTTP/1.1 server with an entry in front, which hands the connections that speak HTTP/2 to a
 * second server. Both call the same listener, HTTP/2 with the objects of Node's compatibility API. It is an `http.Server` because
 * that alone watches slow requests and idle connections.
 */
export class ListenerServer extends Server {
  readonly #limits: ListenerLimits;
  readonly #sockets = new Set<Socket>();
  /** Node closes idle connections when `close()` is called, and not those that come to rest later. */
  readonly #responses = new InFlightResponses(() => this.#closing && this.closeIdleConnections());
  readonly #http1: Http1Connections | undefined;
  readonly #http2: Http2;
  readonly #entry: Acceptor;
  #closing = false;
  /** Whether connections that rest may send one more request when we close. */
  #lingering: boolean;
  #accepted = 0;

  /** Throws Node's error if the certificate or a limit cannot be used. */
  constructor({ limits, certificate, interceptor }: ListenerOptions, listener: RequestListener) {
    super(http1Options(limits));
    this.timeout = limits.inactivityTimeout;
    // A client may close its sending side and still read its response. Node has the switch, and no option for it.
    Reflect.set(this, "httpAllowHalfOpen", true);
    this.#limits = limits;
    this.#lingering = limits.drainDelay > 0;
    const serveByNode = takeConnectionListener(this);
    const cutShort = (socket: Socket) => {
      if (!this.emit("clientError", Object.assign(new Error(), CUT_SHORT), socket)) socket.destroy();
    };
    const handOver = (socket: Socket) => {
      serveByNode(socket);
      readInJavaScript(socket);
      // Node sees the missing end of most requests, but not of one that asks for an upgrade.
      socket.once("end", () => this.#responses.hasIncomplete(socket) && cutShort(socket));
    };
    this.#http1 = interceptor?.http1({ handOver, cutShort });
    this.#http2 = createHttp2(limits, interceptor, (request, response) => this.emit("request", request, response));
    const serve = { http1: this.#http1?.serve ?? handOver, http2: this.#http2.serve };
    const decided = (socket: Socket, protocol: Protocol) => serve[protocol](socket);
    const { sniffTimeout: timeout } = limits;
    this.#entry = certificate
      ? createTlsAcceptor(certificate, timeout, decided)
      : createPlainAcceptor(timeout, decided);
    this.on("connection", (socket) => this.#accept(socket));
    this.on("request", (request, response) => {
      // When a connection ends, Node emits "error" on queued messages whose handlers have left them: unheard, it would end the process.
      request.on("error", ignore);
      response.on("error", ignore);
      this.#track(response);
    });
    this.on("request", listener);
  }

  /**
   * Closes without loss: accepts no new connection, asks clients to leave with their next response, and drains calls in flight.
   * After `drainDelay` it ends the connections that rest or have not said a word, after `closeTimeout` what is left. `callback`
   * is called at the end.
   */
  override close(callback?: (error?: Error) => void): this {
    if (this.#lingering) this.#whenNoneWaits(() => this.#close(callback));
    else this.#close(callback);
    return this;
  }

  /** Clients reconnect after they were asked to leave, and this port must be closed by then. */
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

  /** Calls `then` when the complete HTTP/1.1 requests of a connection have been answered; at once if there are none. */
  static afterAnswers(socket: Socket, then: () => void): void {
    // Node's HTTP/1.1 server sets itself as the server of a socket that it has.
    const server: unknown = Reflect.get(socket, "server");
    const last = server instanceof ListenerServer ? server.#responses.lastOf(socket) : undefined;
    if (last === undefined || last.writableFinished) then();
    // Before Node's own listener, which ends the socket of a client that has closed its sending side.
    else last.prependOnceListener("finish", then);
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
    const { drainDelay, closeTimeout } = this.#limits;
    this.#closing = true;
    this.#responses.makeLast();
    this.#http1?.startDraining();
    this.#http2.startDraining();
    const linger = this.#lingering ? setTimeout(() => this.#endResting(), drainDelay) : undefined;
    if (!this.#lingering) this.#endResting();
    const deadline = setTimeout(() => this.closeAllConnections(), closeTimeout);
    this.once("close", () => {
      clearTimeout(linger);
      clearTimeout(deadline);
      this.#closing = false;
      this.#lingering = drainDelay > 0;
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
    this.#http1?.closeIdle();
    this.#http2.drain();
    this.closeIdleConnections();
  }
}

/** As many connections as wait at the most, by Node's default of `backlog`. */
const MAX_TURNS = 511;

function http1Options(limits: ListenerLimits) {
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
const CUT_SHORT = { code: "HPE_INVALID_EOF_STATE" };

/** Node's own HTTP/1.1 for a socket. `http.Server` registers it as its first listener and offers no other way to it. */
function takeConnectionListener(server: Server): (socket: Socket) => void {
  const [listener] = server.listeners("connection");
  if (listener === undefined) throw new Error("http.Server has no connection listener");
  server.removeAllListeners("connection");
  return (socket) => listener.call(server, socket);
}

/**
 * With any listener for "data" Node's parser no longer reads a TLS socket natively. There, a request whose body comes in a TLS record of
 * its own, just behind its head, is refused as malformed while a large response is still being written: the record is delivered to a
 * parser that was paused for that (`HPE_PAUSED`).
 */
function readInJavaScript(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.on("data", ignore);
}

function ignore(): void {}
