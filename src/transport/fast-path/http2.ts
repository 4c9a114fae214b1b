import { constants, type Http2Stream, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { certificateSubjectOf } from "../wire/client-certificate.ts";
import { BodyBuffer } from "../wire/request-body.ts";
import { type Answer, type CallContext, FastCall, type FastRoute } from "./call.ts";

const WITH_TRAILERS = { waitForTrailers: true };

/** A call over HTTP/2, on the stream itself: Node's compatibility API costs as much as the rest of a call. */
export class Http2Call extends FastCall {
  readonly #stream: TakenStream;
  readonly #buffer: BodyBuffer;

  /** Receives the body, and starts when it is complete. */
  constructor(route: FastRoute, context: CallContext, headers: IncomingHttpHeaders, stream: ServerHttp2Stream) {
    super(route, context, headers, "POST", "");
    this.#stream = stream;
    this.#buffer = new BodyBuffer(route.maxBodyBytes, context.budget, this);
    this.#stream[CALL] = this;
    // The listeners are the same for all streams: closures would be four more objects per call. A reset also closes the stream; without a
    // listener "error" would end the process.
    stream.on("error", ignore).on("data", onData).on("end", onEnd);
  }

  get peerAddress(): string {
    return this.#stream.session?.socket.remoteAddress ?? "";
  }

  get certificateSubject(): string | undefined {
    return certificateSubjectOf(this.#stream.session?.socket);
  }

  /** Drops what follows a body that is too large or was rejected: unread bytes would exhaust the window of the session. */
  receive(chunk: Uint8Array): void {
    if (this.isTooLarge || this.#buffer.add(chunk)) return;
    this.isTooLarge = true;
    this.context.start(this);
  }

  /** Node also ends the stream of a request that was reset or lost before END_STREAM: part of a message is no message. */
  complete(): void {
    if (this.isTooLarge) return;
    if (this.#stream.aborted) {
      this.cancel();
      return;
    }
    this.body = this.#buffer.complete();
    this.context.start(this);
  }

  override cancel(): void {
    this.#stream[CALL] = undefined;
    this.#buffer.drop();
    super.cancel();
  }

  protected respond({ status, headers, body, trailers }: Answer): void {
    const stream = this.#stream;
    stream[CALL] = undefined;
    if (stream.destroyed || stream.closed) return;
    headers.push(":status", String(status));
    try {
      stream.respond(headers, trailers && WITH_TRAILERS);
    } catch (error) {
      stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      throw error;
    }
    // Not `once`, which allocates a wrapper: it is emitted once.
    if (trailers !== undefined) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  }
}

const CALL = Symbol("call");

/** A stream that a call has taken. Node keeps streams longer than calls last, and must not keep what the call was. */
interface Taken {
  [CALL]?: Http2Call | undefined;
}

type TakenStream = ServerHttp2Stream & Taken;

/** Cancels the call of a stream that has closed, unless it is answered. */
export function cancelCall(stream: Http2Stream & Taken): void {
  stream[CALL]?.cancel();
}

function onData(this: TakenStream, chunk: Uint8Array): void {
  this[CALL]?.receive(chunk);
}

function onEnd(this: TakenStream): void {
  this[CALL]?.complete();
}

function ignore(): void {}
