import { create, type DescMessage, type MessageInitShape, type Registry, toJson } from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import { JSON_OPTIONS } from "./json-message.ts";

/** The JSON of a response, which need not be a message yet: in snake_case with every field that cannot be absent (contract §2). */
export function encodeResponse(desc: DescMessage, response: MessageInitShape<DescMessage>, registry: Registry): string {
  return JSON.stringify(toJson(desc, create(desc, response), { ...JSON_OPTIONS, registry }));
}

/**
 * Sends the JSON of a response. `Cache-Control` is `no-store` unless the RPC has set another. Where the RPC has set an `ETag` that
 * the caller has already, the answer is 304 without a body (RFC 9110 §13.1.2).
 */
export function sendJson(request: FastifyRequest, reply: FastifyReply, json: string): FastifyReply {
  if (!reply.hasHeader("cache-control")) reply.header("cache-control", "no-store");
  const { method, headers } = request;
  if (isKnown(method, reply.getHeader("etag"), headers["if-none-match"])) return reply.code(304).send();
  return reply.type("application/json").send(json);
}

/** Whether the caller has the answer of this `etag` already, by its If-None-Match. */
export function isKnown(method: string, etag: unknown, known: string | undefined): boolean {
  if (typeof etag !== "string" || known === undefined || (method !== "GET" && method !== "HEAD")) return false;
  return known.split(",").some((tag) => tag.trim() === "*" || withoutWeakness(tag.trim()) === withoutWeakness(etag));
}

/** If-None-Match compares weakly (RFC 9110 §8.8.3.2). */
function withoutWeakness(etag: string): string {
  return etag.startsWith("W/") ? etag.slice(2) : etag;
}
