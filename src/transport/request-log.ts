import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallLog, EndListener } from "../api/rpc.ts";
import { type CallCounters, codeOfStatus, type Protocol } from "./calls.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Facts of the call for its line in the log. */
    facts: Facts | undefined;
    /** Told how the call ended. */
    onEnd: EndListener | undefined;
  }
}

/** By name; those that every request has at last, and others. */
type Facts = { rpc?: string; protocol?: Protocol; code?: string } & Record<string, string | undefined>;

/** The log of the call that a Fastify request carries. */
export class RequestLog implements CallLog {
  readonly #request: FastifyRequest;
  readonly #facts: Facts;

  constructor(request: FastifyRequest, protocol: Protocol) {
    this.#request = request;
    request.facts ??= {};
    this.#facts = request.facts;
    this.#facts.protocol = protocol;
  }

  add(facts: Readonly<Record<string, string>>): void {
    Object.assign(this.#facts, facts);
  }

  fault(error: unknown): void {
    this.#request.log.error({ err: error, ...this.#facts }, "fault");
  }

  onEnd(listener: EndListener): void {
    this.#request.onEnd = listener;
  }
}

/** One line a request. The URL is not in it: whoever confuses a key_id with a secret would find the secret in our log. */
export function logRequests(fastify: FastifyInstance, counters: CallCounters): void {
  fastify.decorateRequest("facts");
  fastify.decorateRequest("onEnd");
  fastify.addHook("onRequest", async (request: FastifyRequest, reply: FastifyReply) => {
    request.facts = {};
    reply.header("x-request-id", request.id);
    counters.begin();
    // Unlike Fastify's own hook this is told too when the caller went away.
    reply.raw.once("close", () => end(request, reply, counters));
  });
  fastify.addHook("onResponse", async (request, reply) => {
    const { method, facts = {}, log } = request;
    const duration = Math.round(reply.elapsedTime * 10) / 10;
    const line = { method, ...outcomeOf(facts, reply), status: reply.statusCode, ...facts, duration_ms: duration };
    if (facts.rpc === undefined && reply.statusCode < 400) log.debug(line, "request");
    else log.info(line, "request");
  });
}

function end({ facts = {}, onEnd }: FastifyRequest, reply: FastifyReply, counters: CallCounters): void {
  const { protocol, code } = { ...outcomeOf(facts, reply), ...facts };
  counters.of(facts.rpc ?? "other", protocol).end(code, reply.elapsedTime);
  onEnd?.(code, protocol);
}

/** What is said of a request that was no call, or whose call said nothing of it. */
function outcomeOf(
  facts: Facts,
  { raw, statusCode }: FastifyReply,
): { readonly protocol: Protocol; readonly code: string } {
  const protocol = facts.protocol ?? "rest";
  if (facts.code !== undefined) return { protocol, code: facts.code };
  return { protocol, code: raw.writableFinished ? codeOfStatus(statusCode) : "CANCELLED" };
}
