import type { FastifyReply, FastifyRequest } from "fastify";
import type { Call, CallLog } from "../../api/rpc.ts";
import { headerOf, headersOf } from "../headers.ts";
import { RequestLog } from "../request-log.ts";

/** The call as an RPC sees it, over the request and reply of Fastify. To be made before the first await. */
export class RestCall implements Call {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  #controller: AbortController | undefined;
  #isAbandoned = false;
  readonly log: CallLog;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.#request = request;
    this.#reply = reply;
    this.log = new RequestLog(request, "rest");
    reply.raw.once("close", () => {
      if (!reply.raw.writableEnded) this.#abandon();
    });
  }

  header(name: string): string | undefined {
    return headerOf(this.#request.headers, name);
  }

  headers(): [name: string, value: string][] {
    return headersOf(this.#request.headers);
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(name, value);
  }

  setTrailer(): void {}

  get peerAddress(): string {
    return this.#request.socket.remoteAddress ?? "";
  }

  /** Aborts when the caller goes away before the answer; REST has no deadline. Made when first asked for, since few RPCs do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAbandoned) this.#abandon();
    return this.#controller.signal;
  }

  #abandon(): void {
    this.#isAbandoned = true;
    this.#controller?.abort(new Error("the caller went away"));
  }
}
