import type { FastifyReply, FastifyRequest } from "fastify";
import { FastifyCall } from "../fastify-call.ts";

/** A call over REST. To be made before the first await. */
export class RestCall extends FastifyCall {
  readonly #reply: FastifyReply;
  #controller: AbortController | undefined;
  #isAbandoned = false;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request, "rest");
    this.#reply = reply;
    reply.raw.on("close", () => {
      if (!reply.raw.writableEnded) this.#abandon();
    });
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(name, value);
  }

  setTrailer(): void {}

  /** REST has no deadline. Made when first asked for, since few RPCs do. */
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
