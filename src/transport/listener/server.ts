import { type IncomingMessage, type RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { createTickBudget } from "../wire/tick-budget.ts";
import {
  type Acceptor,
  type Certificate,
  createPlainAcceptor,
  createTlsAcceptor,
  destroy,
  type Protocol,
} from "./acceptor.ts";
import { createHttp2, type Http2, takeListener } from "./http2.ts";
import { trackResponses } from "./in-flight-responses.ts";
import type { ListenerLimits } from "./limits.ts";
import type { Http1Connections, RequestInterceptor } from "./request-interceptor.ts";

export interface ListenerOptions {
  /** With a certificate the port accepts only TLS, without one only plain text; both protocols either way. */
  readonly certificate?: Certificate;
  readonly limits: ListenerLimits;
  readonly interceptor?: RequestInterceptor;
}

/**
 * One port for HTTP/1.1 and HTTP/2: Node's HTTP/1.1 server behind an acceptor that passes HTTP/2 connections to a second server. Both
 * call the same listener, HTTP/2 with the objects of Node's compatibility API. It is an `http.Server` because only that supervises slow
 * requests and idle connections.
 */
export class ListenerServer extends Server {
  readonly #limits: ListenerLimits;
  readonly #sockets = new Set<Socket>();
  /** Node closes connections that are idle when `close()` is called, not those that become idle later. */
  readonly #responses = trackResponses(() => this.#closing && this.closeIdleConnections());
  readonly #http1: Http1Connections | undefined;
  readonly #http2: Http2;
  readonly #acceptor: Acceptor;
  #closing = false;
  /** Whether idle connections may send one more request during shutdown. */
  #isDelaying: boolean;
  #accepted = 0;

  /** Throws Node's error if the certificate or a limit cannot be used. */
  constructor({ limits, certificate, interceptor }: ListenerOptions, listener: RequestListener) {
    const { headersTimeout, requestTimeout, keepAliveTimeout, maxHeaderBytes: maxHeaderSize } = limits;
    super({
      headersTimeout,
      requestTimeout,
      keepAliveTimeout,
      maxHeaderSize,
      // Node checks slow requests at this interval, so one may exceed its header timeout by half.
      connectionsCheckingInterval: Math.ceil(headersTimeout / 2),
      // Otherwise Node keeps the first of two, and a proxy may have used the other.
      joinDuplicateHeaders: true,
    });
    this.timeout = limits.inactivityTimeout;
    // A client may close its sending side and still read its response. Node has a property for that, and no option.
    Reflect.set(this, "httpAllowHalfOpen", true);
    this.#limits = limits;
    this.#isDelaying = limits.drainDelay > 0;
    // Its HTTP/1.1 parser.
    const serveByNode = takeListener(this, "connection");
    const cutShort = (socket: Socket) => {
      // The error of Node's parser for an incomplete request.
      const error = Object.assign(new Error(), { code: "HPE_INVALID_EOF_STATE" });
      if (!this.emit("clientError", error, socket)) socket.destroy();
    };
    const handOver = (socket: Socket) => {
      serveByNode(socket);
      readInJavaScript(socket);
      // Node detects the missing end of most requests, but not of an upgrade request.
      socket.once("end", () => this.#responses.hasIncomplete(socket) && cutShort(socket));
    };
    this.#http1 = interceptor?.http1({ handOver, cutShort });
    this.#http2 = createHttp2(limits, interceptor, (request, response) => this.emit("request", request, response));
    const serve = { http1: this.#http1?.serve ?? handOver, http2: this.#http2.serve };
    const decided = (socket: Socket, protocol: Protocol) => serve[protocol](socket);
    const { sniffTimeout: timeout } = limits;
    this.#acceptor = certificate
      ? createTlsAcceptor(certificate, timeout, decided)
      : createPlainAcceptor(timeout, decided);
    this.on("connection", (socket) => {
      this.#accepted++;
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      this.#acceptor.accept(socket);
    });
    this.on("request", (request, response) => {
      // When a connection ends, Node emits "error" on queued messages whose handlers are gone; unhandled, it would end the process.
      request.on("error", ignore);
      response.on("error", ignore);
      // HTTP/2 responses pass here too; their sessions track themselves.
      if (!(response instanceof ServerResponse)) return;
      // Node drops what it has read after such a request, so that a later request could begin in the middle of another.
      if (this.#closing || isUpgrade(request)) response.shouldKeepAlive = false;
      this.#responses.add(response);
    });
    const begin = createTickBudget<() => void>((call) => call());
    this.on("request", (request, response) => {
      const isTaken = response instanceof ServerResponse && interceptor?.takeRequest(request, response) === true;
      if (!isTaken) begin(() => listener(request, response));
    });
  }

  /**
   * Shuts down gracefully: accepts no new connection, asks clients to leave with their next response, and drains calls in flight. Closes
   * idle and silent connections after `drainDelay`, and the remaining ones after `closeTimeout`. Calls `callback` at the end.
   */
  override close(callback?: (error?: Error) => void): this {
    if (this.#isDelaying) this.#onBacklogDrained(() => this.#close(callback));
    else this.#close(callback);
    return this;
  }

  /** Clients reconnect after they were asked to leave, and this port must be closed by then. */
  #close(callback?: (error?: Error) => void): void {
    const wasListening = this.listening;
    super.close(callback);
    if (wasListening) this.#drain();
  }

  /** Like Node's, but not during the drain delay, and not while a connection is sending the end of a large response. */
  override closeIdleConnections(): void {
    if (!this.#isDelaying && !this.#responses.flushing()) super.closeIdleConnections();
  }

  override closeAllConnections(): void {
    this.#sockets.forEach(destroy);
  }

  /** Calls `then` when all complete HTTP/1.1 requests of a connection have been answered; at once if there are none. */
  static afterAnswers(socket: Socket, then: () => void): void {
    // Node's HTTP/1.1 server sets itself as the `server` of its sockets.
    const server: unknown = Reflect.get(socket, "server");
    const last = server instanceof ListenerServer ? server.#responses.lastOf(socket) : undefined;
    if (last === undefined || last.writableFinished) then();
    // Before Node's listener, which ends the socket of a client that has closed its sending side.
    else last.prependOnceListener("finish", then);
  }

  #drain(): void {
    const { drainDelay, goawayTimeout, closeTimeout } = this.#limits;
    this.#closing = true;
    this.#responses.makeLast();
    this.#http1?.startDraining();
    this.#http2.startDraining();
    const delays = this.#isDelaying ? [drainDelay, goawayTimeout] : [0, 0];
    const timers = [
      // A timer runs before the event loop reads what has arrived: a connection with an unread request is not idle.
      after(delays[0], () => setImmediate(() => this.#closeIdle())),
      after(delays[1], () => this.#http2.goAway()),
      after(closeTimeout, () => this.closeAllConnections()),
    ];
    this.once("close", () => {
      for (const timer of timers) clearTimeout(timer);
      this.#http2.goAway();
      this.#closing = false;
      this.#isDelaying = drainDelay > 0;
    });
  }

  /**
   * The kernel has established connections that we have not accepted yet, and resets them when the port closes, which loses their
   * requests. Node accepts one per tick: after a tick without one there are none.
   */
  #onBacklogDrained(close: () => void, turns = MAX_TURNS): void {
    const before = this.#accepted;
    setImmediate(() => {
      if (this.#accepted === before || turns === 0) close();
      else this.#onBacklogDrained(close, turns - 1);
    });
  }

  #closeIdle(): void {
    if (!this.#closing) return;
    this.#isDelaying = false;
    this.#acceptor.drop();
    this.#http1?.closeIdle();
    this.#http2.drain();
    this.closeIdleConnections();
  }
}

/** Calls `run` after so many milliseconds; at once for 0. */
function after(delay = 0, run: () => void): NodeJS.Timeout | undefined {
  if (delay > 0) return setTimeout(run, delay);
  run();
  return undefined;
}

/** Maximum number of waiting connections, Node's default `backlog`. */
const MAX_TURNS = 511;

/**
 * With any "data" listener Node's parser does not read a TLS socket natively. Natively, a request whose body arrives in a separate TLS
 * record right after its head is rejected as malformed while a large response is being written: the record is delivered to a parser that
 * was paused for it (`HPE_PAUSED`).
 */
function readInJavaScript(socket: Socket): void {
  if (socket instanceof TLSSocket) socket.on("data", ignore);
}

function ignore(): void {}

/** Returns whether a request asks for an upgrade (RFC 9110 §7.8). */
export function isUpgrade({ headers: { connection = "", upgrade } }: IncomingMessage): boolean {
  return upgrade !== undefined && /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(connection);
}
