import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
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

/** One line a request. The URL is not in it: whoever confuses a key_id with a secret would find the secret in our log. */
export function logRequests(fastify: FastifyInstance): void {
  fastify.decorateRequest("facts");
  fastify.addHook("onRequest", async (request: FastifyRequest, reply: FastifyReply) => {
    request.facts = {};
    reply.header("x-request-id", request.id);
  });
  fastify.addHook("onResponse", async (request, reply) => {
    const { method, facts, log } = request;
    const line = { method, status: reply.statusCode, ...facts, duration_ms: Math.round(reply.elapsedTime * 10) / 10 };
    if (facts.rpc === undefined && reply.statusCode < 400) log.debug(line, "request");
    else log.info(line, "request");
  });
}
