import type { Socket } from "node:net";
import type { ListenerLimits } from "../listener/limits.ts";
import type { Http1Connections, NodeHttp1 } from "../listener/request-interceptor.ts";
import { certificateSubjectOf } from "../wire/client-certificate.ts";
import { type Answer, type CallContext, FastCall, type FastRoute } from "./call.ts";
import { type Head, readHead, writeResponse } from "./http1-message.ts";

/** A call over HTTP/1.1, whose body is complete when it is created. */
class Http1Call extends FastCall {
  readonly #connection: Http1Connection;

  constructor(route: FastRoute, context: CallContext, head: Head, body: Uint8Array, connection: Http1Connection) {
    super(route, context, head.headers, head.method, head.target);
    this.#connection = connection;
    this.body = body;
  }

  get peerAddress(): string {
    return this.#connection.socket.remoteAddress ?? "";
  }

  get certificateSubject(): string | undefined {
    return certificateSubjectOf(this.#connection.socket);
  }

  protected respond(answer: Answer): void {
    this.#connection.send(this, answer);
  }
}

export interface Http1Options {
  readonly node: NodeHttp1;
  readonly context: CallContext;
  /** Returns the route of a request by its head, or undefined to decline it. */
  readonly find: (head: Head) => FastRoute | undefined;
  readonly limits: Pick<ListenerLimits, "maxHeaderBytes" | "keepAliveTimeout">;
}

export function createHttp1Connections(options: Http1Options): Http1Connections {
  const connections = new Set<Http1Connection>();
  const shutdown = { isDraining: false };
  return {
    serve(socket) {
      const connection = new Http1Connection(socket, options, shutdown, () => connections.delete(connection));
      connections.add(connection);
    },
    startDraining() {
      shutdown.isDraining = true;
    },
    closeIdle() {
      for (const connection of connections) connection.closeIfIdle();
    },
  };
}

/** A request that is not complete within so many milliseconds and reads goes to Node's streaming parser. */
const MAX_WAIT = { time: 1_000, reads: 8 } as const;

const NOTHING: Buffer = Buffer.alloc(0);

/**
 * HTTP/1.1 on one connection, for as long as every request is complete, in the common form and accepted. With the first other request,
 * the connection goes to Node's parser for good, with that request unread.
 */
class Http1Connection {
  readonly socket: Socket;
  readonly #options: Http1Options;
  /** Called when the connection is closed or handed over. */
  readonly #left: () => void;
  /** Received and not yet accepted. */
  #rest = NOTHING;
  /** In how many reads it came. */
  #reads = 0;
  #timer: NodeJS.Timeout | undefined;
  #current: Http1Call | undefined;
  #isServing = false;
  /** The client has closed its sending side. */
  #isEnded = false;
  readonly #shutdown: { readonly isDraining: boolean };

  constructor(socket: Socket, options: Http1Options, shutdown: { readonly isDraining: boolean }, left: () => void) {
    this.socket = socket;
    this.#options = options;
    this.#shutdown = shutdown;
    this.#left = left;
    socket.setTimeout(options.limits.keepAliveTimeout);
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onClose);
    socket.on("drain", this.#onDrain).on("timeout", this.#onTimeout).on("error", ignore);
  }

  /** Closes the connection unless a request is in flight or has partly arrived. */
  closeIfIdle(): void {
    if (this.#current === undefined && this.#rest.length === 0) this.socket.destroySoon();
  }

  readonly #onData = (bytes: Buffer): void => {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#reads++;
    if (!this.#isBusy()) this.#serve();
    if (this.#isBusy()) this.#pause();
  };

  /** The client may have closed its sending side alone: a call in flight is answered before the connection closes. */
  readonly #onEnd = (): void => {
    if (this.#current !== undefined) this.#isEnded = true;
    else if (this.#rest.length > 0) this.#options.node.cutShort(this.socket);
    else this.socket.destroySoon();
  };

  readonly #onClose = (): void => {
    this.#current?.cancel();
    this.#current = undefined;
    clearTimeout(this.#timer);
    this.#left();
  };

  readonly #onDrain = (): void => {
    if (this.#current === undefined) this.#continue();
  };

  readonly #onTimeout = (): void => {
    this.socket.destroy();
  };

  /** A client that does not read its responses gets no more of them. */
  #isBusy(): boolean {
    return this.#current !== undefined || this.socket.writableNeedDrain || !this.socket.writable;
  }

  /**
   * Node reads 64 KiB ahead at most. What is pipelined goes back to the socket: an unread byte also holds back "end", after which
   * Node's parser could not take the connection over.
   */
  #pause(): void {
    this.socket.pause();
    if (this.#rest.length > 0) this.socket.unshift(this.#rest);
    this.#rest = NOTHING;
    this.#reads = 0;
  }

  /** Serves the requests that have arrived, one after the other. */
  #serve(): void {
    this.#isServing = true;
    while (this.#rest.length > 0 && !this.#isBusy()) {
      if (!this.#serveNext()) break;
    }
    this.#isServing = false;
  }

  /** Returns whether a request was accepted. */
  #serveNext(): boolean {
    const rest = this.#rest;
    const { context, find, limits } = this.#options;
    const head = readHead(rest, limits.maxHeaderBytes);
    if (head === "partial") return this.#wait();
    const route = head === "other" ? undefined : find(head);
    if (head === "other" || route === undefined || route.protocol === "grpc") return this.#handOver();
    if (head.contentLength > route.maxBodyBytes) return this.#handOver();
    const size = head.size + head.contentLength;
    if (rest.length < size) return this.#wait();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#rest = size === rest.length ? NOTHING : rest.subarray(size);
    this.#reads = this.#rest.length === 0 ? 0 : 1;
    this.#current = new Http1Call(route, context, head, rest.subarray(head.size, size), this);
    context.start(this.#current);
    return true;
  }

  #wait(): boolean {
    if (this.#reads > MAX_WAIT.reads) return this.#handOver();
    this.#timer ??= setTimeout(() => this.#handOver(), MAX_WAIT.time);
    return false;
  }

  /**
   * Writes the response to the call in flight. While the server drains, it is the last of its connection: requests pipelined behind it are
   * not served, and the client knows, because the response says `Connection: close` (RFC 9112 §9.6).
   */
  send(call: Http1Call, answer: Answer): void {
    if (this.#current !== call) return;
    this.#current = undefined;
    const { keepAliveTimeout } = this.#options.limits;
    const isLast = this.#isEnded || this.#shutdown.isDraining;
    try {
      writeResponse(this.socket, answer, isLast ? null : Math.floor(keepAliveTimeout / 1000));
    } catch (error) {
      this.socket.destroy();
      throw error;
    }
    if (isLast) this.socket.destroySoon();
    else if (!this.#isServing) this.#continue();
  }

  #continue(): void {
    if (this.#rest.length > 0) this.#serve();
    if (this.socket.isPaused() && !this.#isBusy()) this.socket.resume();
  }

  #handOver(): false {
    const socket = this.socket;
    clearTimeout(this.#timer);
    socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    socket.off("drain", this.#onDrain).off("timeout", this.#onTimeout).off("error", ignore);
    this.#left();
    if (this.#rest.length > 0) socket.unshift(this.#rest);
    this.#options.node.handOver(socket);
    if (socket.isPaused()) socket.resume();
    return false;
  }
}

function ignore(): void {}
