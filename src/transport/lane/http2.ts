import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { readWhole } from "./body.ts";
import type { Answer, BodyReader, Exchange } from "./exchange.ts";

const BEFORE_TRAILERS = { waitForTrailers: true };

/** HTTP/2, over the stream itself: Node's objects in the manner of HTTP/1.1 cost as much as all else together. */
export class Http2Exchange implements Exchange {
  readonly #stream: ServerHttp2Stream;
  readonly #headers: IncomingHttpHeaders;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.#stream = stream;
    this.#headers = headers;
    // A reset is told by "close" too; unheard, this event would end the process.
    stream.on("error", ignore);
  }

  header(name: string): string | undefined {
    const value = this.#headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  }

  readBody(limit: number, reader: BodyReader): void {
    if (Number(this.#headers["content-length"]) > limit) {
      this.dropBody();
      reader.onTooLarge();
    } else readWhole(this.#stream, limit, reader);
  }

  dropBody(): void {
    this.#stream.resume();
  }

  onGone(listener: () => void): void {
    const stream = this.#stream;
    // Node ends a stream that is reset; this event tells the one from the other.
    stream.once("aborted", listener);
    if (stream.aborted || stream.destroyed) listener();
  }

  respond({ status, headers, body, trailers }: Answer): void {
    const stream = this.#stream;
    if (stream.destroyed || stream.closed) return;
    headers.push(":status", String(status));
    if (trailers === undefined) stream.respond(headers);
    else {
      stream.respond(headers, BEFORE_TRAILERS);
      // Not `once`, which wraps: it is emitted once.
      stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    }
    stream.end(body);
  }
}

function ignore(): void {}
