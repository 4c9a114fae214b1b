import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { EndListener } from "../api/rpc.ts";
import { type AccessLogEntry, createAccessLogWriter, recordOf } from "./access-log-format.ts";
import { type CallCounters, CLIENT_CLOSED_REQUEST, codeOfStatus, type Protocol } from "./call-metrics.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Facts of the call for its line in the log, by name. */
    facts: ({ rpc?: string; protocol?: Protocol; code?: string } & Record<string, string>) | undefined;
    /** Told how the call ended. */
    onEnd: EndListener | undefined;
    /** What the line in the log waits for. */
    work: Promise<unknown> | undefined;
  }
}

/** Writes one line per request. The URL is not in it: whoever confuses a key_id with a secret would find the secret in our log. */
export function registerAccessLog(fastify: FastifyInstance, counters: CallCounters): void {
  const write = createAccessLogWriter(fastify.log);
  /** The response is complete, or the client has disconnected: its outcome is known, though work may go on. */
  const end = (request: FastifyRequest, reply: FastifyReply) => {
    const { raw, elapsedTime } = reply;
    // In HTTP/2 a response without an end is "finished" too when its stream is closed.
    const status = raw.writableEnded && raw.writableFinished ? reply.statusCode : CLIENT_CLOSED_REQUEST;
    const { rpc = "other", protocol = "rest", code = codeOfStatus(status) } = request.facts ?? {};
    counters.of(rpc, protocol).end(code, elapsedTime);
    request.onEnd?.(code, protocol);
    const writeLine = () => {
      const { id, method, facts = {}, log } = request;
      const { protocol: _, code: error, ...fields } = facts;
      const entry: AccessLogEntry = {
        reqId: id,
        method,
        status,
        fields: [fields],
        protocol,
        code,
        elapsed: elapsedTime,
      };
      // An error of gRPC has the HTTP status 200.
      if (fields.rpc === undefined && error === undefined && status < 400) log.debug(recordOf(entry), "request");
      else write(entry);
    };
    if (request.work === undefined) writeLine();
    else request.work.then(writeLine, writeLine);
  };
  for (const name of ["facts", "onEnd", "work"]) fastify.decorateRequest(name);
  fastify.addHook("onRequest", (request, reply, next) => {
    request.facts = {};
    reply.header("x-request-id", request.id);
    counters.begin();
    let isOver = false;
    const onOver = () => {
      if (!isOver) end(request, reply);
      isOver = true;
    };
    // Fastify's own hook is not called when the client disconnects. Not `once`, which allocates a wrapper: each is emitted once.
    reply.raw.on("finish", onOver).on("close", onOver);
    next();
  });
}
