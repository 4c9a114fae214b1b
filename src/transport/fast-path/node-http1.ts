import type { IncomingMessage, ServerResponse } from "node:http";
import { certificateSubjectOf } from "../wire/client-certificate.ts";
import { fieldsOf } from "../wire/headers.ts";
import { BodyBuffer } from "../wire/request-body.ts";
import { type Answer, type CallContext, FastCall, type FastRoute } from "./call.ts";

/** A call over HTTP/1.1 that Node's parser has read, because its connection has sent a request that was handed over. */
export class NodeHttp1Call extends FastCall {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #buffer: BodyBuffer;

  /** Receives the body, which has at most `maxBodyBytes`, and starts when it is complete. */
  constructor(route: FastRoute, context: CallContext, request: IncomingMessage, response: ServerResponse) {
    super(route, context, request.headers, request.method ?? "", request.url ?? "");
    this.#request = request;
    this.#response = response;
    this.#buffer = new BodyBuffer(route.maxBodyBytes, context.budget, this);
    request.on("data", (chunk: Uint8Array) => this.#receive(chunk)).on("end", () => this.#complete());
    response.on("close", () => this.cancel());
  }

  override fields(name: string): readonly string[] {
    return fieldsOf(this.#request.rawHeaders, name);
  }

  get peerAddress(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  get certificateSubject(): string | undefined {
    return certificateSubjectOf(this.#request.socket);
  }

  /** Drops what follows a body that was evicted. */
  #receive(chunk: Uint8Array): void {
    if (!this.isOver) this.#buffer.add(chunk);
  }

  /** Over HTTP/1.1, Node ends complete requests only. */
  #complete(): void {
    this.body = this.#buffer.complete();
    this.context.start(this);
  }

  override cancel(): void {
    this.#buffer.drop();
    super.cancel();
  }

  protected respond({ status, headers, body }: Answer): void {
    try {
      this.#response.writeHead(status, headers);
    } catch (error) {
      this.#response.destroy();
      throw error;
    }
    this.#response.end(body);
  }
}
