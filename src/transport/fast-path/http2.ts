import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { BodyBuffer } from "../body-budget.ts";
import { type Answer, type CallContext, FastCall, type FastRoute } from "./call.ts";

const WITH_TRAILERS = { waitForTrailers: true };

/** A call over HTTP/2, on the stream itself: Node's compatibility API costs as much as the rest of a call. */
export class Http2Call extends FastCall {
  readonly #stream: ServerHttp2Stream;
  readonly #buffer: BodyBuffer;
  readonly #link: Link;

  /** Receives the body, and starts when it is complete. */
  constructor(route: FastRoute, context: CallContext, headers: IncomingHttpHeaders, stream: ServerHttp2Stream) {
    super(route, context, headers);
    this.#stream = stream;
    this.#buffer = new BodyBuffer(route.maxBodyBytes, context.budget, this);
    this.#link = { call: this };
    listen(stream, this.#link);
  }

  get peerAddress(): string {
    return this.#stream.session?.socket.remoteAddress ?? "";
  }

  /** What follows a body that is too large, or was refused, still flows, and is dropped: it must not hold the session's window. */
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
    this.#link.call = undefined;
    this.#buffer.drop();
    super.cancel();
  }

  protected respond({ status, headers, body, trailers }: Answer): void {
    const stream = this.#stream;
    this.#link.call = undefined;
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

/** What a stream knows of its call, until the call is over: Node keeps streams longer, and must not keep what the call was. */
interface Link {
  call: Http2Call | undefined;
}

/** A separate function, since all closures of a scope retain what one of them uses. */
function listen(stream: ServerHttp2Stream, link: Link): void {
  // A reset also emits "close"; without a listener "error" would end the process.
  stream.on("error", ignore).on("close", () => link.call?.cancel());
  stream.on("data", (chunk: Uint8Array) => link.call?.receive(chunk)).on("end", () => link.call?.complete());
}

function ignore(): void {}
