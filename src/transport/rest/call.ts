import type { FastifyReply } from "fastify";
import { FastifyCall } from "../wire/fastify-call.ts";

/** A call over REST. Create it before the first await. */
export class RestCall extends FastifyCall {
  readonly #reply: FastifyReply;

  constructor(reply: FastifyReply) {
    super(reply.request, "rest");
    this.#reply = reply;
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(name, value);
  }

  setTrailer(): void {}
}
