import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2Stream, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";

/** Serves some requests in front of Node's servers. A request that it declines reaches them with no byte of its body consumed. */
export interface RequestInterceptor {
  /** Serves HTTP/1.1 connections, until one sends a request that the interceptor declines. */
  http1(node: NodeHttp1): Http1Connections;
  /** Serves a request on a connection that was handed over to Node's HTTP/1.1 server, or returns false to decline it. */
  takeRequest(request: IncomingMessage, response: ServerResponse): boolean;
  /** Serves the request of an HTTP/2 stream, or returns false to decline it. */
  takeStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean;
  /** Must be called when a stream has closed, also one that was declined. */
  closeStream(stream: Http2Stream): void;
}

/** Node's HTTP/1.1 server, for connections that the interceptor hands over. */
export interface NodeHttp1 {
  /** Takes over a connection for good, with all unserved bytes still to be read. */
  readonly handOver: (socket: Socket) => void;
  /** Takes over a connection that ended in the middle of a message. */
  readonly cutShort: (socket: Socket) => void;
}

export interface Http1Connections {
  /** Serves a socket of an HTTP/1.1 client from which nothing has been read. */
  serve(socket: Socket): void;
  /** From now on every connection, new ones included, closes with its next response, or with that of its last request in flight. */
  startDraining(): void;
  closeIdle(): void;
}
