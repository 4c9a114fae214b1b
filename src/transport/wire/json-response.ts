import type { FastifyReply, FastifyRequest } from "fastify";
import { isUnchanged } from "../../lib/static-file.ts";
import { RestCall } from "./fastify-call.ts";

/** JSON, as text or in UTF-8. */
export type Json = string | Buffer;

/** Returns a handler that sends the answer. The body of a rejected request is drained so that the connection can serve the next request. */
export function restHandler<T>(
  answer: (call: RestCall, request: FastifyRequest) => Promise<T>,
  send: (request: FastifyRequest, reply: FastifyReply, response: T) => FastifyReply,
) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const call = new RestCall(reply);
    try {
      return send(request, reply, await call.logged(answer(call, request)));
    } catch (error) {
      request.raw.resume();
      throw error;
    }
  };
}

/**
 * Sends the JSON of a response. `Cache-Control` is `no-store` unless the RPC has set another. If the RPC has set an `ETag` that the
 * client already has, the response is 304 without a body (RFC 9110 §13.1.2).
 */
export function sendJson(request: FastifyRequest, reply: FastifyReply, json: Json): FastifyReply {
  if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-store");
  const { method, headers } = request;
  if (isUnchanged(method, reply.getHeader("etag"), headers["if-none-match"])) return reply.code(304).send();
  return reply.type("application/json; charset=utf-8").send(json);
}
