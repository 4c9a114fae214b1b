import type { FastifyRequest } from "fastify";
import type { CallLog } from "../api/rpc.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Facts of the call for its line in the log. */
    facts: Record<string, string>;
  }
}

/** The log of the call that a Fastify request carries. */
export class RequestLog implements CallLog {
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest) {
    this.#request = request;
  }

  add(facts: Readonly<Record<string, string>>): void {
    Object.assign(this.#request.facts, facts);
  }

  fault(error: unknown): void {
    this.#request.log.error({ err: error, ...this.#request.facts }, "fault");
  }
}
