import { Code } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { CallLog, EndListener } from "../api/rpc.ts";
import { type CallCounters, CLIENT_CLOSED_REQUEST, codeName, codeOfStatus, type Protocol } from "./calls.ts";
import { requestLine, type WriteLine } from "./request-line.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Facts of the call for its line in the log. */
    facts: Facts | undefined;
    /** Told how the call ended. */
    onEnd: EndListener | undefined;
    /** What the line in the log waits for. */
    work: Promise<unknown> | undefined;
  }
}

/** By name; those that every request has at last, and others. */
type Facts = { rpc?: string; protocol?: Protocol; code?: string } & Record<string, string>;

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

  note(message: string, facts: Readonly<Record<string, unknown>>): void {
    this.#request.log.info({ ...this.#facts, ...facts }, message);
  }

  fault(error: unknown): void {
    this.#request.log.error({ err: error, ...this.#facts }, "fault");
  }

  onEnd(listener: EndListener): void {
    this.#request.onEnd = listener;
  }
}

/**
 * Makes the line of the request wait for this work, so that it has the facts of a change that commits after the client has
 * disconnected, or after its deadline. At most one work for a request; it must begin before the response.
 */
export function awaitWork<T>(request: FastifyRequest, work: Promise<T>): Promise<T> {
  request.work = work;
  return work;
}

/** Writes one line per request. The URL is not in it: whoever confuses a key_id with a secret would find the secret in our log. */
export function logRequests(fastify: FastifyInstance, counters: CallCounters): void {
  const log = { counters, write: requestLine(fastify.log) };
  fastify.decorateRequest("facts");
  fastify.decorateRequest("onEnd");
  fastify.decorateRequest("work");
  fastify.addHook("onRequest", (request, reply, next) => {
    request.facts = {};
    reply.header("x-request-id", request.id);
    counters.begin();
    let isOver = false;
    const onOver = () => {
      if (!isOver) end(request, reply, log);
      isOver = true;
    };
    // Fastify's own hook is not called when the client disconnects.
    reply.raw.once("finish", onOver).once("close", onOver);
    next();
  });
}

/** The response is complete, or the client has disconnected: its outcome is known, though work may go on. */
function end(request: FastifyRequest, reply: FastifyReply, { counters, write }: Log): void {
  const outcome = outcomeOf(request.facts, reply);
  const status = isSent(reply) ? reply.statusCode : CLIENT_CLOSED_REQUEST;
  const duration = reply.elapsedTime;
  counters.of(request.facts?.rpc ?? "other", outcome.protocol).end(outcome.code, duration);
  request.onEnd?.(outcome.code, outcome.protocol);
  const writeLine = () => {
    const { id, method, facts = {}, log } = request;
    const line = { method, status, ...facts, ...outcome, duration_ms: Math.round(duration * 10) / 10 };
    // An error of gRPC has the HTTP status 200.
    if (facts.rpc === undefined && facts.code === undefined && status < 400) log.debug(line, "request");
    else write([{ reqId: id }, line]);
  };
  if (request.work === undefined) writeLine();
  else request.work.then(writeLine, writeLine);
}

/** Who is told of each request. */
interface Log {
  readonly counters: CallCounters;
  readonly write: WriteLine;
}

interface Outcome {
  readonly protocol: Protocol;
  readonly code: string;
}

/** What is said of a request that was no call, or whose call said nothing of it. */
function outcomeOf(facts: Facts = {}, reply: FastifyReply): Outcome {
  const protocol = facts.protocol ?? "rest";
  if (facts.code !== undefined) return { protocol, code: facts.code };
  return { protocol, code: isSent(reply) ? codeOfStatus(reply.statusCode) : codeName(Code.Canceled) };
}

/** In HTTP/2 a response without an end is "finished" too when its stream is closed. */
function isSent({ raw }: FastifyReply): boolean {
  return raw.writableEnded && raw.writableFinished;
}
