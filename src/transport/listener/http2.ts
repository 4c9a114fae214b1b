import type { EventEmitter } from "node:events";
import { METHODS } from "node:http";
import {
  constants,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
  type Http2Stream,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import { errorResponse } from "../wire/error-body.ts";
import { methodUnknown } from "../wire/http-error.ts";
import { destroyAfter } from "./closing.ts";
import type { ListenerLimits } from "./limits.ts";
import type { RequestInterceptor } from "./request-interceptor.ts";

export type Http2 = ReturnType<typeof createHttp2>;

/** Creates an HTTP/2 server that does not listen. Node's defaults reject floods of resets, settings, pings and invalid frames. */
export function createHttp2(
  limits: ListenerLimits,
  interceptor: RequestInterceptor | undefined,
  onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
) {
  const settings = {
    maxConcurrentStreams: limits.maxConcurrentStreams,
    maxHeaderListSize: limits.maxHeaderBytes,
    initialWindowSize: RECEIVE_WINDOW,
    enablePush: false,
  };
  const serve: typeof onRequest = (request, response) => {
    if (KNOWN_METHODS.has(request.method)) onRequest(request, response);
    else rejectMethod(response);
  };
  const server = createServer({ settings }, serve);
  server.on("checkContinue", (request, response) => {
    // Node's listener throws for a stream that the client has reset.
    if (request.stream.destroyed || request.stream.closed) return;
    response.writeContinue();
    serve(request, response);
  });
  const sessions = new Map<Http2Session | undefined, SessionStreams>();
  let isDraining = false;
  // Node's conversion of a stream to its compatibility API.
  const makeRequest = takeListener(server, "stream");
  const limitRequest = requestLimit(limits.requestTimeout);
  server.on("stream", (stream, headers, ...rest) => {
    const streams = sessions.get(stream.session);
    streams?.add(stream, isDraining);
    limitRequest(stream);
    if (!interceptor?.takeStream(stream as ServerHttp2Stream, headers)) makeRequest(stream, headers, ...rest);
    // The client has reset it already.
    if (streams === undefined) interceptor?.closeStream(stream);
  });
  server.on("session", (session) => {
    sessions.set(session, trackStreams(session, interceptor));
    session.once("close", () => sessions.delete(session));
    session.setLocalWindowSize(RECEIVE_WINDOW);
    closeWhenIdle(session, limits.sessionTimeout);
  });
  return {
    /** Serves a socket of an HTTP/2 client whose preface has not been read. */
    serve(socket: Socket): void {
      // The HTTP/1.1 server accepts half-open sockets; an HTTP/2 session on one would never notice the client's FIN.
      socket.allowHalfOpen = false;
      // A closed session waits for the client's FIN without a timer of Node.
      socket.once("finish", () => destroyAfter(socket, limits.sniffTimeout));
      server.emit("connection", socket);
    },
    /** From now on each session gets GOAWAY with its next stream, if that is the last one that is open, or when the last one has ended. */
    startDraining() {
      isDraining = true;
    },
    /** Sends GOAWAY on every session without open streams, and on the others when theirs have ended. */
    drain() {
      for (const streams of sessions.values()) streams.drain();
    },
    /**
     * Sends GOAWAY on every session and closes it when its streams have ended. A request that crosses the GOAWAY is above its last stream
     * id: the client knows that it was not served and may retry it (RFC 9113 §6.8).
     */
    goAway() {
      isDraining = false;
      // RFC 9113 also describes a graceful variant: a first GOAWAY that rejects nothing, and the final one a round trip later. Node
      // cannot do it: once GOAWAY is sent and no stream is open, it stops reading the session.
      for (const session of sessions.keys()) session?.close();
    },
  };
}

/** The methods that Fastify has routes for. In HTTP/1.1, Node's parser rejects others. */
const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);

function rejectMethod(response: Http2ServerResponse): void {
  const { code, headers, body } = errorResponse(methodUnknown());
  response.writeHead(code, headers).end(body);
}

type SessionStreams = ReturnType<typeof trackStreams>;

/**
 * Tracks the open streams of a session. GOAWAY waits for the last of them: after it, grpc-js takes its next keepalive ping as failed, and
 * closes the connection with all calls in flight.
 */
function trackStreams(session: ServerHttp2Session, interceptor: RequestInterceptor | undefined) {
  let open = 0;
  let isDraining = false;
  const closeAt = (remaining: number) => isDraining && open === remaining && session.close();
  // Shared by all streams, because each listener costs a hundredth of a small call.
  const onClose = function (this: Http2Stream): void {
    interceptor?.closeStream(this);
    open--;
    closeAt(0);
  };
  // Node sends GOAWAY before the end of the stream, so that no client, such as nginx, sends its next request after that.
  const onFinish = () => closeAt(1);
  return {
    add(stream: Http2Stream, drain: boolean): void {
      open++;
      stream.on("close", onClose);
      if (!drain) return;
      isDraining = true;
      stream.on("finish", onFinish);
    },
    drain(): void {
      isDraining = true;
      closeAt(0);
    },
  };
}

/**
 * Sends GOAWAY on a session without traffic for `timeout` to twice `timeout` milliseconds. If its streams or the client keep it open, it is
 * destroyed after the same time without traffic again. Not `session.setTimeout()`: Node does not clear that timer when the session is
 * destroyed, which retains 2 KiB for each connection of the last `timeout` milliseconds.
 */
function closeWhenIdle(session: ServerHttp2Session, timeout: number): void {
  let before = 0;
  const check = () => {
    // "close" follows later, and the socket is gone.
    if (session.destroyed) return;
    const { bytesRead, bytesWritten } = session.socket;
    const isIdle = bytesRead + bytesWritten === before;
    before = bytesRead + bytesWritten;
    if (!isIdle) return;
    if (session.closed) session.destroy();
    else session.close();
  };
  const timer = setInterval(check, timeout).unref();
  session.once("close", () => clearInterval(timer));
}

/** Removes and returns what Node does at an event of its servers: their first listener, which is not exported. */
export function takeListener(server: EventEmitter, event: string) {
  const [listener] = server.listeners(event);
  if (listener === undefined) throw new Error(`Node has no listener for "${event}"`);
  server.removeAllListeners(event);
  return (...args: unknown[]): void => Reflect.apply(listener, server, args);
}

/** Flow control window in bytes. The protocol's default of 64 KiB would limit a bulk import to that much per round trip. */
const RECEIVE_WINDOW = 1_048_576;

/** Streams whose requests last as long as their responses. */
const untimed = new WeakSet<object>();

/**
 * Lets the body of a request arrive for as long as it is answered. A client that has not ended it by then is reset without an error (RFC 9113
 * §8.1).
 */
export function liftRequestLimit(stream: ServerHttp2Stream): void {
  untimed.add(stream);
  // Not at "finish", before the trailers are sent.
  stream.once("wantTrailers", () => setImmediate(() => stream.close()));
}

/**
 * Node's `requestTimeout` for a stream: its body must be complete in time. Most bodies arrive with their header in one tick; only the
 * others get a timer, which costs as much as the work of a small call.
 */
function requestLimit(timeout: number): (stream: Http2Stream) => void {
  let fresh: Http2Stream[] = [];
  const check = () => {
    const streams = fresh;
    fresh = [];
    for (const stream of streams) {
      if (stream.readableEnded || stream.destroyed) continue;
      const onTimeout = () => {
        if (untimed.has(stream) && !stream.writableEnded) timer.refresh();
        else stream.close(constants.NGHTTP2_CANCEL);
      };
      const timer = setTimeout(onTimeout, timeout);
      stream.once("end", () => clearTimeout(timer)).once("close", () => clearTimeout(timer));
    }
  };
  return (stream) => {
    if (!stream.endAfterHeaders && fresh.push(stream) === 1) setImmediate(check);
  };
}
